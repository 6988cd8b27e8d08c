// SPDX-License-Identifier: Apache-2.0
// Context: where a call runs - backend, device, stream, threads - and the workspace it may use.
//
// All work is enqueued on the context's stream (cpu and simt: done when the call returns). A
// context serves one host thread at a time; contexts are cheap, so give each thread its own. A call
// on a context that another thread is using throws Error(invalid_argument), before it starts or
// when it ends; results of both calls are then undefined.
// The workspace grows to the largest need seen and is then reused: after the first call of a shape
// nothing is allocated, so that calls may be captured in a CUDA graph. Blocks that a captured
// graph may still point to are kept until the context ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "rung/core/export.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

/// Machines whose measured rates are compiled in, at most.
inline constexpr int max_rated_machines = 15;

/// Properties of a device; sizes in bytes. The simulated GPU has the limits of an H200.
struct DeviceInfo {
  std::string name;
  std::string driver = {};     // its version, where it may change what is fast; "" on a CPU
  int compute_capability = 0;  // 90 for 9.0; 0 on a CPU
  int sms = 1;                 // cores on a CPU
  std::size_t shared_per_block = 0;
  std::size_t shared_per_sm = 0;
  std::size_t l2_bytes = 0;
  std::size_t memory_bytes = 0;
  double bytes_per_second = 0;  // nominal, of a GPU's memory; 0: not known
  std::string family =
      {};  // of a CPU: vendor, family, model and vector bits: "AuthenticAMD 26 2 512"
  /// Index of the machine whose rates the device uses (rates.hpp); core sets it.
  int rated_index = max_rated_machines;
};

inline constexpr int relaxed_captures = 2;  // as cudaStreamCaptureModeRelaxed

/// Functions by which core uses a kind of device without its headers. A backend fills one with
/// designated initializers and registers it (device/, simt/); the CPU's is in core.
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
  /// The index of a platform's device; throws Error where there is none. Null without platforms.
  int (*index_of)(int platform, int device) = nullptr;
  /// Returns whether work on the stream is being captured in a graph. Null where nothing can be.
  bool (*is_capturing)(int device, void* stream) = nullptr;
  /// Copies in the order of a stream, without waiting. Null: copy is used instead.
  void (*copy_on)(int device, void* stream, void* to, const void* from,
                  std::size_t bytes) = nullptr;
  /// Sets the mode in which the calling thread treats captures of other threads, and returns the
  /// one before: in `relaxed_captures` it may allocate, free and wait meanwhile without ending
  /// them. Null where nothing can be captured.
  int (*exchange_capture_mode)(int mode) = nullptr;
};

/// Registers a backend during static initialization, without allocating; one constant a backend:
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
/// Null when librung was built without this backend.
RUNG_API const DeviceApi* device_api(Backend backend);

/// Rule by which calls on a CPU choose among an operator's rungs, which add in different orders.
enum class Choice : std::uint8_t {
  repeatable,  // by shapes, layouts and options alone: any number of threads gives the same bits
  fastest,     // also by the number of threads, so that another number may give other bits
};

/// Source of a call's choice of rung.
enum class Tuning : std::uint8_t {
  off,         // from estimates, which are the same on every machine of a kind
  remembered,  // from the tuning file where it has the call, else from estimates
  first_call,  // likewise; what the file does not have is measured, and written to it
};

namespace detail {
class ContextUse;
}

class RUNG_API Context {
 public:
  /// threads = 0: every core that this process may use (honors OMP_NUM_THREADS and affinity).
  static Context cpu(int threads = 0);
  /// Uses the caller's stream (a cudaStream_t), or the default stream when null.
  /// Throws Error(not_available) without a usable GPU.
  static Context cuda(int device = 0, void* stream = nullptr);
  static Context simt();
  /// Returns a context on a device of an OpenCL platform; work goes to a queue of rung's own.
  /// device().index then counts over all platforms. Throws Error(not_available) without a device.
  static Context opencl(int platform = 0, int device = 0);
  /// threads: of cpu and simt; other devices have no use for them.
  static Context on(Backend backend, int threads = 0);
  /// Returns a context where a tensor is: Context::on_device(x.device).
  static Context on_device(Device device);

  /// Moves. The source may be assigned to and destroyed; calls on it throw Error(invalid_argument).
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  ~Context();

  /// False once it has been moved from.
  [[nodiscard]] bool valid() const noexcept { return pool_ != nullptr; }

  [[nodiscard]] Backend backend() const noexcept { return device_.backend; }
  [[nodiscard]] Device device() const noexcept { return device_; }
  [[nodiscard]] int threads() const noexcept { return threads_; }
  [[nodiscard]] void* stream() const noexcept { return stream_; }
  [[nodiscard]] const DeviceInfo& info() const noexcept { return *info_; }

  /// Describes memory on this context's device: context.tensor(pointer, {m, n}), of the pointer's
  /// type, or context.tensor(pointer, DType::f16, {m, n}) of a pointer to void. Strides count
  /// elements; left out: C-contiguous. Throws Error(invalid_argument) as TensorRef's constructors.
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
  /// Calls from now on choose so. GPUs have no use for it.
  void set_choice(Choice choice);

  [[nodiscard]] Tuning tuning() const noexcept { return tuning_; }
  /// Calls from now on choose their rungs so; a new context takes the word of RUNG_TUNE (off,
  /// remembered or first_call; default off). The tuning file is RUNG_TUNE_FILE, else
  /// rung/tuning.jsonl in XDG_CACHE_HOME or ~/.cache: a line of JSON per call, which processes
  /// share. Measuring takes up to a quarter of a second beside one or two runs of each candidate;
  /// it works on copies of what the call writes, leaves the caller's tensors alone, and waits for
  /// all work of a GPU. While the stream is captured in a graph, or where copies would take a
  /// quarter of the memory, nothing is measured. Measured choices may differ from machine to
  /// machine, and with them the order of additions. On a GPU a call that repeats the last one keeps
  /// its kernel.
  void set_tuning(Tuning tuning);
  /// Returns whether RUNG_LOG=calls was set when this context was made: then every new call is
  /// written to stderr, a line each, as `rung tune --from-log` reads it.
  [[nodiscard]] bool logs_calls() const noexcept { return logs_calls_; }

  /// Returns at least `bytes` of scratch memory on the device, 4096-byte aligned, valid until the
  /// next call on this context. There is one buffer: request it once per call.
  void* workspace(std::size_t bytes) { return bytes <= capacity_ ? workspace_ : grow(bytes); }
  [[nodiscard]] std::size_t workspace_capacity() const noexcept { return capacity_; }

  /// A T made on first use, which lives until the context ends or chooses by another rule: what a
  /// caller wants to find again on its next call (dispatch keeps its last choice in one).
  template <class T>
  T& memo() {
    static const char key = 0;  // its address stands for T
    for (Memo* memo = memos_; memo != nullptr; memo = memo->next) {
      if (memo->key == &key) return static_cast<MemoOf<T>*>(memo)->value;
    }
    auto* made = new MemoOf<T>(&key, memos_);
    memos_ = made;
    return made->value;
  }

  /// Waits until all enqueued work is done; throws what went wrong in it.
  void synchronize();

 private:
  /// Reference type of elements T, read-only where T is const.
  template <class T>
  using Described = BasicTensorRef<std::conditional_t<std::is_const_v<T>, const void, void>>;
  struct Pool;
  /// A list, and a pool that only context.cpp knows: every kernel's source reads this header, and
  /// those that bring smart pointers are slow to read.
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
  /// Throws while a call runs.
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
  const void* user_ = nullptr;  // identifies the thread that is in a call
};

namespace detail {
/// Identifies the calling thread among those that are running.
inline const void* this_thread() noexcept { return __builtin_thread_pointer(); }

/// Marks a context as used by the calling thread while a call runs; a nested call finds the mark.
/// Plain loads and stores, which cost a nanosecond: two calls that start within the same few
/// nanoseconds may both set it, and then finish() of the first sees the other's.
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
  /// Throws if another thread has used the context meanwhile.
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

/// Availability of a backend here; if it is not available, `why` says what is missing.
struct Availability {
  bool ok = true;
  std::string why;
  explicit operator bool() const { return ok; }
};
RUNG_API Availability available(Backend backend);

}  // namespace rung
