// SPDX-License-Identifier: Apache-2.0
// Context: backend, device, stream and threads on which an operator call runs, and its workspace.
//
// All work is enqueued on the context's stream (cpu and simt: done when the call returns). A
// context serves one host thread at a time; contexts are cheap, so give each thread its own. A call
// on a context that another thread is using throws Error(invalid_argument), before it starts or
// when it ends; results of both calls are then undefined.
// The workspace grows to the largest size requested and is then reused: after the first call of a
// shape nothing is allocated, so calls can be captured in a CUDA graph. Blocks that a captured
// graph may still refer to are kept until the context is destroyed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "rung/core/export.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

/// Maximum number of machines whose measured rates are compiled in.
inline constexpr int max_rated_machines = 15;

/// Properties of a device; sizes in bytes. The simulated GPU has the limits of an H200.
struct DeviceInfo {
  std::string name;
  std::string driver = {};     // driver version, if it may affect kernel speed; "" on a CPU
  int compute_capability = 0;  // 90 for 9.0; 0 on a CPU
  int sms = 1;                 // cores on a CPU
  std::size_t shared_per_block = 0;
  std::size_t shared_per_sm = 0;
  std::size_t l2_bytes = 0;
  std::size_t memory_bytes = 0;
  double bytes_per_second = 0;  // nominal memory bandwidth of a GPU; 0: not known
  std::string family =
      {};  // of a CPU: vendor, family, model and vector bits: "AuthenticAMD 26 2 512"
  /// Index of the machine whose rates the device uses (rates.hpp); set by core.
  int rated_index = max_rated_machines;
};

inline constexpr int relaxed_captures = 2;  // cudaStreamCaptureModeRelaxed

/// Functions by which core uses a backend's devices without including its headers. A backend fills
/// in a DeviceApi by designated initializers and registers it (device/, simt/); core has the CPU's.
struct DeviceApi {
  Backend backend;
  int (*device_count)();
  /// Returns why device_count() is 0, such as "no NVIDIA driver"; "" otherwise.
  const char* (*why_not)();
  DeviceInfo (*info)(int device);
  void* (*allocate)(int device, std::size_t bytes);  // throws Error(out_of_memory)
  void (*release)(int device, void* memory) noexcept;
  void (*copy)(int device, void* to, const void* from, std::size_t bytes);  // any direction; waits
  void* (*create_stream)(int device);
  void (*destroy_stream)(int device, void* stream) noexcept;
  void (*synchronize)(int device, void* stream);
  /// Returns the index, over the devices of all platforms, of a platform's device; throws Error if
  /// it does not exist. Null for backends without platforms.
  int (*index_of)(int platform, int device) = nullptr;
  /// Returns true while work on the stream is being captured in a graph. Null if the backend has no
  /// graphs.
  bool (*is_capturing)(int device, void* stream) = nullptr;
  /// Copies in stream order, without waiting. Null: `copy` is used instead.
  void (*copy_on)(int device, void* stream, void* to, const void* from,
                  std::size_t bytes) = nullptr;
  /// Sets the calling thread's stream capture mode and returns the previous one. In
  /// `relaxed_captures` the thread may allocate, free and wait without invalidating captures by
  /// other threads. Null if the backend has no graphs.
  int (*exchange_capture_mode)(int mode) = nullptr;
};

/// Registers a backend during static initialization, without allocating; one constant per backend:
///   const DeviceRegistration self{{.backend = Backend::cuda, .device_count = count, ...}};
class RUNG_API DeviceRegistration {
 public:
  explicit DeviceRegistration(const DeviceApi& api) noexcept;
  DeviceRegistration(const DeviceRegistration&) = delete;
  DeviceRegistration& operator=(const DeviceRegistration&) = delete;

 private:
  friend RUNG_API const DeviceApi* device_api(Backend backend);
  DeviceApi api_;
  const DeviceRegistration* next_;
};
/// Returns a backend's functions; null if librung was built without it.
RUNG_API const DeviceApi* device_api(Backend backend);

/// Rule by which CPU calls choose among an operator's rungs, which differ in summation order.
enum class Choice : std::uint8_t {
  repeatable,  // by shapes, layouts and options only: the same bits for any number of threads
  fastest,     // also by the number of threads, so the bits may depend on it
};

/// Basis on which a call chooses its rung.
enum class Tuning : std::uint8_t {
  off,         // estimates, which are equal on all machines of a kind
  remembered,  // the tuning file's entry for the call, else estimates
  first_call,  // the tuning file's entry; a call without an entry is measured and recorded
};

namespace detail {
class ContextUse;
}

class RUNG_API Context {
 public:
  /// Uses `threads` threads; 0: every core that this process may use (honors OMP_NUM_THREADS and
  /// affinity).
  static Context cpu(int threads = 0);
  /// Uses the caller's stream (a cudaStream_t), or the default stream when null.
  /// Throws Error(not_available) without a usable GPU.
  static Context cuda(int device = 0, void* stream = nullptr);
  static Context simt();
  /// Returns a context on a device of an OpenCL platform; all contexts on a device share one
  /// in-order queue. device().index counts the devices of all platforms. Throws
  /// Error(not_available) without a device.
  static Context opencl(int platform = 0, int device = 0);
  /// Returns a context on device 0 of a backend; `threads` applies to cpu and simt only.
  static Context on(Backend backend, int threads = 0);
  /// Returns a context on the device of a tensor: Context::on_device(x.device).
  static Context on_device(Device device);

  /// Moves the context. The source may be assigned to and destroyed; calls on it throw
  /// Error(invalid_argument).
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  ~Context();

  /// Returns false after the context has been moved from.
  [[nodiscard]] bool valid() const noexcept { return pool_ != nullptr; }

  [[nodiscard]] Backend backend() const noexcept { return device_.backend; }
  [[nodiscard]] Device device() const noexcept { return device_; }
  [[nodiscard]] int threads() const noexcept { return threads_; }
  [[nodiscard]] void* stream() const noexcept { return stream_; }
  [[nodiscard]] const DeviceInfo& info() const noexcept { return *info_; }

  /// Describes memory on this context's device: context.tensor(pointer, {m, n}) with the pointer's
  /// element type, or context.tensor(pointer, DType::f16, {m, n}) with a void pointer. Strides
  /// count elements and default to C-contiguous. Throws Error(invalid_argument) as TensorRef's
  /// constructors do.
  template <class T>
  [[nodiscard]] auto tensor(T* data, const Extents& shape) const {
    return Described<T>(data, shape, device_);
  }
  template <class T>
  [[nodiscard]] auto tensor(T* data, const Extents& shape, const Extents& strides) const {
    return Described<T>(data, shape, strides, device_);
  }
  [[nodiscard]] TensorRef tensor(void* data, DType dtype, const Extents& shape) const {
    return {data, dtype, shape, device_};
  }
  [[nodiscard]] ConstTensorRef tensor(const void* data, DType dtype, const Extents& shape) const {
    return {data, dtype, shape, device_};
  }

  [[nodiscard]] Choice choice() const noexcept { return choice_; }
  /// Sets the rule for later calls on a CPU; has no effect on GPUs.
  void set_choice(Choice choice);

  [[nodiscard]] Tuning tuning() const noexcept { return tuning_; }
  /// Sets the basis of choice for later calls; a new context uses RUNG_TUNE (off, remembered or
  /// first_call; default off). The tuning file is RUNG_TUNE_FILE, else rung/tuning.jsonl in
  /// XDG_CACHE_HOME or ~/.cache; it has one line of JSON per call and is shared between processes.
  /// Measuring takes up to a quarter of a second in addition to one or two runs of each candidate;
  /// it writes to scratch copies of the results, not to the caller's tensors, and waits for all
  /// work on the GPU. Nothing is measured while the stream is being captured in a graph, or if the
  /// copies would exceed a quarter of the memory. Measured choices, and with them the summation
  /// order, may differ between machines. On a GPU a call that repeats the last one keeps its
  /// kernel.
  void set_tuning(Tuning tuning);
  /// Returns whether RUNG_LOG=calls was set when this context was created. Every new call is then
  /// written to stderr, one line per call, in the format that `rung tune --from-log` reads.
  [[nodiscard]] bool logs_calls() const noexcept { return logs_calls_; }

  /// Returns at least `bytes` of scratch memory on the device, 4096-byte aligned, valid until the
  /// next call on this context. There is one buffer: request it once per call.
  void* workspace(std::size_t bytes) { return bytes <= capacity_ ? workspace_ : grow(bytes); }
  [[nodiscard]] std::size_t workspace_capacity() const noexcept { return capacity_; }

  /// Returns the context's object of type T, created on first use and destroyed with the context.
  /// A change of choice() (on a CPU) or of tuning() (except on a CUDA device) destroys it, too. It
  /// keeps state between calls: dispatch caches its last choice.
  template <class T>
  T& memo() {
    static const char key = 0;  // its address identifies T
    for (Memo* memo = memos_; memo != nullptr; memo = memo->next) {
      if (memo->key == &key) return static_cast<MemoOf<T>*>(memo)->value;
    }
    auto* made = new MemoOf<T>(&key, memos_);
    memos_ = made;
    return made->value;
  }

  /// Waits until all enqueued work is done; throws an error that occurred in it.
  void synchronize();

 private:
  /// Reference type for elements T: read-only if T is const.
  template <class T>
  using Described = BasicTensorRef<std::conditional_t<std::is_const_v<T>, const void, void>>;
  struct Pool;
  /// A linked list, and a pool type defined in context.cpp: every kernel's source includes this
  /// header, and headers of smart pointers are slow to compile.
  struct Memo {
    const void* key;
    Memo* next;
    Memo(const void* type_key, Memo* next_memo) : key(type_key), next(next_memo) {}
    Memo(const Memo&) = delete;
    Memo& operator=(const Memo&) = delete;
    virtual ~Memo() = default;
  };
  template <class T>
  struct MemoOf final : Memo {
    using Memo::Memo;
    T value{};
  };

  Context(Device device, int threads, void* stream);
  /// Throws unless valid().
  [[nodiscard]] Pool& pool() const;
  /// Throws if a call is in progress.
  void require_idle(const char* function) const;
  void* grow(std::size_t bytes);
  void forget() noexcept;
  void release() noexcept;
  friend class detail::ContextUse;

  Device device_;
  int threads_ = 1;
  Choice choice_ = Choice::repeatable;
  Tuning tuning_ = Tuning::off;
  bool logs_calls_ = false;
  void* stream_ = nullptr;
  void* workspace_ = nullptr;
  std::size_t capacity_ = 0;
  const DeviceInfo* info_ = nullptr;
  Pool* pool_ = nullptr;  // owned, as are the memos
  Memo* memos_ = nullptr;
  const void* user_ = nullptr;  // this_thread() of the thread in a call; null: none
};

namespace detail {
/// Returns an address that identifies the calling thread among running threads.
inline const void* this_thread() noexcept { return __builtin_thread_pointer(); }

/// Marks a context as used by the calling thread while a call runs; a nested call finds the mark
/// already set. Plain loads and stores, which cost a nanosecond: two calls that start within the
/// same few nanoseconds may both set the mark, and finish() of the first then detects the other
/// thread.
class RUNG_API ContextUse {
 public:
  explicit ContextUse(Context& context) : context_(context) {
    const void* const user = __atomic_load_n(&context.user_, __ATOMIC_RELAXED);
    if (user != nullptr && user != me_) throw_in_use();
    nested_ = user == me_;
    __atomic_store_n(&context.user_, me_, __ATOMIC_RELAXED);
  }
  ContextUse(const ContextUse&) = delete;
  ContextUse& operator=(const ContextUse&) = delete;
  ~ContextUse() {
    if (!nested_ && mine()) __atomic_store_n(&context_.user_, nullptr, __ATOMIC_RELAXED);
  }
  /// Throws if another thread has used the context in the meantime.
  void finish() const {
    if (!mine()) throw_in_use();
  }

 private:
  [[nodiscard]] bool mine() const {
    return __atomic_load_n(&context_.user_, __ATOMIC_RELAXED) == me_;
  }
  [[noreturn]] static void throw_in_use();

  Context& context_;
  const void* me_ = this_thread();
  bool nested_ = false;
};
}  // namespace detail

/// Availability of a backend on this machine; if it is unavailable, `why` is the reason.
struct Availability {
  bool ok = true;
  std::string why;
  explicit operator bool() const { return ok; }
};
RUNG_API Availability available(Backend backend);

}  // namespace rung
