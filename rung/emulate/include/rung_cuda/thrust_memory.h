// SPDX-License-Identifier: Apache-2.0
// Thrust's device pointers and vectors.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <new>
#include <system_error>
#include <type_traits>
#include <vector>

#include "rung/simt/simulator.hpp"
#include "rung_cuda/one_thread.h"

namespace thrust {

template <class T>
class device_ptr;

using std::error_code;
using std::system_error;

/// Reference to an element of device memory; host code accesses the element by copies.
template <class T>
class device_reference {
 public:
  __host__ __device__ explicit device_reference(T* element) : element_(element) {}
  device_reference(const device_reference&) = default;
  __host__ __device__ operator T() const {  // NOLINT
    if (rung::simt::in_kernel()) return *element_;
    alignas(T) unsigned char copy[sizeof(T)];
    cudaMemcpy(copy, element_, sizeof(T), cudaMemcpyDeviceToHost);
    return *reinterpret_cast<T*>(copy);
  }
  /// Returns the element's address, not this object's.
  __host__ __device__ device_ptr<T> operator&() const { return device_ptr<T>(element_); }  // NOLINT
  __host__ __device__ const device_reference& operator=(const T& value) const {
    if (rung::simt::in_kernel()) {
      *element_ = value;
    } else {
      cudaMemcpy(element_, &value, sizeof(T), cudaMemcpyHostToDevice);
    }
    return *this;
  }
  __host__ __device__ const device_reference& operator=(const device_reference& other) const {
    return *this = static_cast<T>(other);
  }
  template <class Other>
  __host__ __device__ const device_reference& operator+=(const Other& other) const {
    return *this = static_cast<T>(static_cast<T>(*this) + other);
  }
  template <class Other>
  __host__ __device__ const device_reference& operator-=(const Other& other) const {
    return *this = static_cast<T>(static_cast<T>(*this) - other);
  }

 private:
  T* element_;
};

template <class T>
class device_ptr {
 public:
  typedef std::remove_cv_t<T> value_type;
  typedef value_type rung_element;
  typedef std::ptrdiff_t difference_type;
  typedef device_reference<T> reference;
  typedef device_ptr pointer;
  typedef std::random_access_iterator_tag iterator_category;

  __host__ __device__ device_ptr() = default;
  __host__ __device__ explicit device_ptr(T* raw) : raw_(raw) {}
  template <class Other>
  requires std::is_convertible_v<Other*, T*> __host__ __device__
  device_ptr(const device_ptr<Other>& other)
      : raw_(other.get()) {}  // NOLINT
  __host__ __device__ T* get() const { return raw_; }
  __host__ __device__ reference operator*() const { return reference(raw_); }
  __host__ __device__ reference operator[](difference_type i) const { return reference(raw_ + i); }
  __host__ __device__ device_ptr operator+(difference_type n) const { return device_ptr(raw_ + n); }
  __host__ __device__ device_ptr operator-(difference_type n) const { return device_ptr(raw_ - n); }
  __host__ __device__ difference_type operator-(const device_ptr& other) const {
    return raw_ - other.raw_;
  }
  __host__ __device__ device_ptr& operator+=(difference_type n) {
    raw_ += n;
    return *this;
  }
  __host__ __device__ device_ptr& operator-=(difference_type n) { return *this += -n; }
  __host__ __device__ device_ptr& operator++() { return *this += 1; }
  __host__ __device__ device_ptr& operator--() { return *this += -1; }
  __host__ __device__ device_ptr operator++(int) { return device_ptr(raw_++); }
  __host__ __device__ device_ptr operator--(int) { return device_ptr(raw_--); }
  __host__ __device__ friend bool operator==(const device_ptr& a, const device_ptr& b) {
    return a.raw_ == b.raw_;
  }
  __host__ __device__ friend bool operator!=(const device_ptr& a, const device_ptr& b) {
    return a.raw_ != b.raw_;
  }
  __host__ __device__ friend bool operator<(const device_ptr& a, const device_ptr& b) {
    return a.raw_ < b.raw_;
  }
  __host__ __device__ friend bool operator>(const device_ptr& a, const device_ptr& b) {
    return a.raw_ > b.raw_;
  }
  __host__ __device__ friend bool operator<=(const device_ptr& a, const device_ptr& b) {
    return a.raw_ <= b.raw_;
  }
  __host__ __device__ friend bool operator>=(const device_ptr& a, const device_ptr& b) {
    return a.raw_ >= b.raw_;
  }

 private:
  T* raw_ = nullptr;
};

template <class T>
__host__ __device__ device_ptr<T> device_pointer_cast(T* raw) {
  return device_ptr<T>(raw);
}
template <class T>
__host__ __device__ T* raw_pointer_cast(const device_ptr<T>& pointer) {
  return pointer.get();
}
template <class T>
__host__ __device__ T* raw_pointer_cast(T* pointer) {
  return pointer;
}

template <class T>
class device_vector;

template <class T>
class host_vector : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  host_vector() = default;
  host_vector(const std::vector<T>& other) : std::vector<T>(other) {}  // NOLINT
  host_vector(const device_vector<T>& other) { *this = other; }        // NOLINT
  host_vector& operator=(const device_vector<T>& other) {
    this->resize(other.size());
    cudaMemcpy(std::vector<T>::data(), other.data().get(), other.size() * sizeof(T),
               cudaMemcpyDeviceToHost);
    return *this;
  }
};

template <class T>
class device_vector {
 public:
  typedef T value_type;
  typedef std::size_t size_type;
  typedef device_reference<T> reference;
  typedef device_ptr<T> iterator;
  typedef device_ptr<const T> const_iterator;
  typedef device_ptr<T> pointer;

  device_vector() = default;
  explicit device_vector(size_type n) : device_vector(n, T{}) {}
  device_vector(size_type n, const T& value) { assign(std::vector<T>(n, value)); }
  device_vector(std::initializer_list<T> values) { assign(std::vector<T>(values)); }
  template <class Iterator>
  requires(!std::is_integral_v<Iterator>) device_vector(Iterator first, Iterator last) {
    assign(std::vector<T>(first, last));
  }
  device_vector(const std::vector<T>& values) { assign(values); }  // NOLINT
  device_vector(const device_vector& other) { *this = other; }
  device_vector(device_vector&& other) noexcept { swap(other); }
  ~device_vector() { cudaFree(memory_); }

  device_vector& operator=(const device_vector& other) {
    if (this == &other) return *this;
    reserve_anew(other.size_);
    cudaMemcpy(memory_, other.memory_, size_ * sizeof(T), cudaMemcpyDeviceToDevice);
    return *this;
  }
  device_vector& operator=(device_vector&& other) noexcept {
    swap(other);
    return *this;
  }
  device_vector& operator=(const std::vector<T>& values) {
    assign(values);
    return *this;
  }

  [[nodiscard]] size_type size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  iterator begin() { return iterator(memory_); }
  iterator end() { return iterator(memory_ + size_); }
  const_iterator begin() const { return const_iterator(memory_); }
  const_iterator end() const { return const_iterator(memory_ + size_); }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }
  pointer data() { return pointer(memory_); }
  device_ptr<const T> data() const { return device_ptr<const T>(memory_); }
  reference operator[](size_type i) { return reference(memory_ + i); }
  T operator[](size_type i) const { return device_reference<const T>(memory_ + i); }
  reference front() { return (*this)[0]; }
  reference back() { return (*this)[size_ - 1]; }
  T front() const { return (*this)[0]; }
  T back() const { return (*this)[size_ - 1]; }
  void clear() { size_ = 0; }
  void reserve(size_type) {}
  void shrink_to_fit() {}
  void push_back(const T& value) { resize(size_ + 1, value); }
  void pop_back() { --size_; }
  void assign(size_type n, const T& value) { assign(std::vector<T>(n, value)); }
  void resize(size_type n, const T& value = T{}) {
    if (n > size_) {
      std::vector<T> values = to_host();
      values.resize(n, value);
      assign(values);
    }
    size_ = n;
  }
  template <class Iterator>
  requires(!std::is_integral_v<Iterator>) void assign(Iterator first, Iterator last) {
    assign(std::vector<T>(first, last));
  }
  iterator erase(iterator first, iterator last) {
    return change(first,
                  [&](std::vector<T>& values, auto at) { values.erase(at, at + (last - first)); });
  }
  iterator erase(iterator at) { return erase(at, at + 1); }
  iterator insert(iterator before, const T& value) {
    return change(before, [&](std::vector<T>& values, auto at) { values.insert(at, value); });
  }
  iterator insert(iterator before, size_type n, const T& value) {
    return change(before, [&](std::vector<T>& values, auto at) { values.insert(at, n, value); });
  }
  template <class Iterator>
  requires(!std::is_integral_v<Iterator>) iterator
      insert(iterator before, Iterator first, Iterator last) {
    return change(before, [&](std::vector<T>& values, auto at) {
      const std::vector<T> more(first, last);
      values.insert(at, more.begin(), more.end());
    });
  }
  [[nodiscard]] size_type capacity() const { return size_; }
  void swap(device_vector& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
  }

 private:
  [[nodiscard]] std::vector<T> to_host() const {
    std::vector<T> values(size_);
    for (size_type i = 0; std::is_same_v<T, bool> && i < size_; ++i) values[i] = (*this)[i];
    if constexpr (!std::is_same_v<T, bool>) {
      cudaMemcpy(values.data(), memory_, size_ * sizeof(T), cudaMemcpyDeviceToHost);
    }
    return values;
  }
  /// Modifies the elements at `where` on the host; returns an iterator to the same position.
  template <class Change>
  iterator change(iterator where, Change how) {
    const auto offset = where - begin();
    std::vector<T> values = to_host();
    how(values, values.begin() + offset);
    assign(values);
    return begin() + offset;
  }
  void reserve_anew(size_type n) {
    cudaFree(memory_);
    memory_ = nullptr;
    if (cudaMalloc(&memory_, n * sizeof(T)) != cudaSuccess) throw std::bad_alloc();
    size_ = n;
  }
  void assign(const std::vector<T>& values) {
    reserve_anew(values.size());
    for (size_type i = 0; std::is_same_v<T, bool> && i < size_; ++i) (*this)[i] = values[i];
    if constexpr (!std::is_same_v<T, bool>) {
      cudaMemcpy(memory_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice);
    }
  }

  T* memory_ = nullptr;
  size_type size_ = 0;
};

/// Allocator of managed memory.
template <class T>
struct universal_allocator {
  typedef T value_type;
  universal_allocator() = default;
  template <class Other>
  universal_allocator(const universal_allocator<Other>&) {}  // NOLINT
  T* allocate(std::size_t n) {
    T* memory = nullptr;
    if (cudaMallocManaged(&memory, n * sizeof(T)) != cudaSuccess) throw std::bad_alloc();
    return memory;
  }
  void deallocate(T* memory, std::size_t) { cudaFree(memory); }
  template <class Other>
  bool operator==(const universal_allocator<Other>&) const {
    return true;
  }
};
template <class T>
using universal_vector = std::vector<T, universal_allocator<T>>;

template <class T>
device_ptr<T> device_malloc(std::size_t n) {
  T* memory = nullptr;
  if (cudaMalloc(&memory, n * sizeof(T)) != cudaSuccess) throw std::bad_alloc();
  return device_ptr<T>(memory);
}
inline device_ptr<void> device_malloc(std::size_t bytes) {
  return device_ptr<void>(device_malloc<char>(bytes).get());
}
template <class T>
void device_free(device_ptr<T> memory) {
  cudaFree(const_cast<std::remove_cv_t<T>*>(memory.get()));
}

}  // namespace thrust
