// SPDX-License-Identifier: Apache-2.0
// Measures the candidate kernels of an operator call, and reads the environment variables of
// tuning.
#include "rung/core/tuning.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <utility>

#include "rung/core/cpu_device.hpp"
#include "rung/core/error.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tuning_file.hpp"
#include "rung/core/version.hpp"

namespace rung {
namespace detail {
namespace {

// --- the environment --------------------------------------------------------------------------

constexpr std::array<std::pair<std::string_view, Tuning>, 3> tunings{
    {{"off", Tuning::off}, {"remembered", Tuning::remembered}, {"first_call", Tuning::first_call}}};

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// Returns the tuning file that the environment names now. Never destroyed, since destructors of
/// static objects may still call operators.
TuningFile& tuning_file() {
  static std::mutex guard;
  // One per process, since a child may have been forked while the parent's file was locked.
  static auto& files = *new std::map<std::pair<pid_t, std::string>, std::unique_ptr<TuningFile>>;
  const std::string path = tuning_file_path();
  const std::lock_guard lock(guard);
  std::unique_ptr<TuningFile>& file = files[{getpid(), path}];
  if (file == nullptr) file = std::make_unique<TuningFile>(path);
  return *file;
}

// --- key of a call ----------------------------------------------------------------------------

/// Formats a tensor as "x:f32[16,4096]{8192,1}@16": the strides only if they are not contiguous,
/// and the alignment up to 16 bytes, the most that a rung requires.
std::string layout_of(const ObservedCall::Tensor& operand) {
  const ConstTensorRef& tensor = operand.tensor;
  const auto listed = [&](const Extents& list) {
    std::string text;
    for (int axis = 0; axis < list.rank; ++axis) {
      text += (axis > 0 ? "," : "") + std::to_string(list[axis]);
    }
    return text;
  };
  std::string text = std::string(operand.name) + ':';
  if (tensor.data == nullptr && tensor.shape.rank == 0) return text + '-';
  text += std::string(to_string(tensor.dtype)) + '[' + listed(tensor.shape) + ']';
  const ConstTensorRef contiguous(tensor.data, tensor.dtype, tensor.shape, tensor.device);
  bool differs = false;  // axes of extent 1 may have any stride
  for (int axis = 0; axis < tensor.shape.rank; ++axis) {
    differs |= tensor.shape[axis] > 1 && tensor.strides[axis] != contiguous.strides[axis];
  }
  if (differs) text += '{' + listed(tensor.strides) + '}';
  constexpr std::uintptr_t vector = 16;
  return text + '@' + std::to_string(reinterpret_cast<std::uintptr_t>(tensor.data) % vector);
}

TuningKey key_of(const ObservedCall& call, const Context& context) {
  TuningKey key{.version = version(),
                .device = std::string(to_string(context.backend())) + ": " + context.info().name,
                .op = std::string(call.op()),
                .problem = call.problem(),
                .layout = {}};
  if (context.backend() == Backend::cpu) {
    // The CPU name that a virtual machine reports may not identify the CPU.
    key.device += ", L2 " + std::to_string(context.info().l2_bytes >> 10) + " KiB";
  }
  if (!context.info().driver.empty()) key.device += ", CUDA " + context.info().driver;
  const std::vector<ObservedCall::Tensor> tensors = call.tensors();
  for (const ObservedCall::Tensor& operand : tensors) {
    if (!key.layout.empty()) key.layout += ' ';
    key.layout += layout_of(operand);
    // Distinguishes in-place calls, for which another kernel may be faster or the only valid one.
    for (const ObservedCall::Tensor& other : tensors) {
      if (&other == &operand) break;
      if (operand.tensor.data == nullptr || operand.tensor.data != other.tensor.data) continue;
      key.layout += '=' + std::string(other.name);
      break;
    }
  }
  // Repeatable results are equal for any number of threads, so the choice must not depend on it.
  if (context.backend() == Backend::cpu && context.choice() == Choice::fastest) {
    key.threads = context.threads();
  }
  return key;
}

// --- measuring --------------------------------------------------------------------------------

/// Copies of all results of a call; `pointers` has the call's arguments with results replaced by
/// copies.
class Scratch {
 public:
  Scratch(const ObservedCall& call, const Context& context) : Scratch(context) {
    const std::vector<ObservedCall::Tensor> tensors = call.tensors();
    for (const ObservedCall::Tensor& operand : tensors) {
      pointers.push_back(const_cast<void*>(operand.tensor.data));
    }
    for (const ObservedCall::Tensor& operand : tensors) {
      if (operand.written && operand.tensor.data != nullptr) replace(operand.tensor, tensors);
    }
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    for (void* block : blocks_) api_.release(device_, block);
  }

  /// Returns the bytes that copies of the call's results occupy.
  static double bytes(const ObservedCall& call) {
    double sum = 0;
    for (const ObservedCall::Tensor& operand : call.tensors()) {
      const ByteRange range = byte_range(operand.tensor);
      if (operand.written) sum += static_cast<double>(range.end - range.begin);
    }
    return sum;
  }

  /// Returns true if no result spans more than four times the bytes of its elements: the copies
  /// include the bytes in between, which may belong to other data.
  static bool is_dense(const ObservedCall& call) {
    for (const ObservedCall::Tensor& operand : call.tensors()) {
      if (!operand.written || operand.tensor.data == nullptr) continue;
      const ByteRange range = byte_range(operand.tensor);
      const auto own = static_cast<double>(operand.tensor.size()) *
                       static_cast<double>(size_of(operand.tensor.dtype));
      if (static_cast<double>(range.end - range.begin) > 4 * own) return false;
    }
    return true;
  }

  /// Restores the copies to the results' contents before the call.
  void restore() {
    for (const Copy& one : copies_) {
      if (api_.copy_on != nullptr) {
        api_.copy_on(device_, stream_, one.to, one.from, one.bytes);
      } else {
        api_.copy(device_, one.to, one.from, one.bytes);
      }
    }
  }

  std::vector<void*> pointers;

 private:
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
  };

  /// Delegated constructor: once it has completed, the destructor frees the allocations if the rest
  /// of the other constructor throws.
  explicit Scratch(const Context& context)
      : api_(*device_api(context.backend())),
        device_(context.device().index),
        stream_(context.stream()) {}

  /// Allocates a copy of a written tensor, at an address that is equal modulo the page size so that
  /// alignment and cache sets are unchanged, and replaces the pointers of all operands with this
  /// address.
  void replace(const ConstTensorRef& written, const std::vector<ObservedCall::Tensor>& tensors) {
    constexpr std::size_t page = 4096;
    const ByteRange range = byte_range(written);
    const std::size_t size = range.end - range.begin;
    if (size == 0) return;
    blocks_.reserve(blocks_.size() + 1);
    blocks_.push_back(api_.allocate(device_, size + 2 * page));
    const auto block = reinterpret_cast<std::uintptr_t>(blocks_.back());
    const std::uintptr_t copy = (block + page - 1) / page * page + range.begin % page;
    copies_.push_back(
        {reinterpret_cast<void*>(copy), reinterpret_cast<const void*>(range.begin), size});
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].tensor.data != written.data) continue;
      const auto own = reinterpret_cast<std::uintptr_t>(written.data);
      pointers[i] = reinterpret_cast<void*>(copy + (own - range.begin));
    }
  }

  const DeviceApi& api_;
  int device_;
  void* stream_;
  std::vector<void*> blocks_;
  std::vector<Copy> copies_;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Contestant {
  const RungInfo* rung;
  double least = std::numeric_limits<double>::infinity();
};

/// Returns the host time in seconds per call, over `calls` calls.
double timed(ObservedCall& call, const Contestant& one, Scratch& scratch, int calls,
             Context& context) {
  scratch.restore();
  context.synchronize();
  const double begin = now();
  for (int i = 0; i < calls; ++i) call.run(*one.rung, scratch.pointers, context);
  context.synchronize();
  return (now() - begin) / calls;
}

/// Times the candidates round-robin, so that disturbances affect all of them. Candidates far behind
/// the best so far are not timed again.
std::vector<Contestant> race(ObservedCall& call, const std::vector<ObservedCall::Candidate>& list,
                             Scratch& scratch, Context& context) {
  constexpr int rounds = 5;
  constexpr double long_enough = 2e-4;  // seconds per timing, to amortize the clock and the launch
  constexpr int most_calls = 32;        // in-place results drift with each call
  constexpr double budget = 0.25;       // seconds, for all rounds but the first
  constexpr double far_behind = 1.5;
  constexpr double slow = 0.1;  // seconds; longer first calls are not repeated

  std::vector<Contestant> racing;
  double best = std::numeric_limits<double>::infinity();
  for (const ObservedCall::Candidate& candidate : list) {
    Contestant one{.rung = candidate.rung};
    try {
      // The first call may load code, build tables and grow the workspace, so it is timed again.
      const double first = timed(call, one, scratch, 1, context);
      one.least = first > slow ? first : timed(call, one, scratch, 1, context);
    } catch (const Error&) {
      continue;  // for example, out of memory: another kernel may need less
    }
    best = std::min(best, one.least);
    racing.push_back(one);
  }
  const double begin = now();
  for (int round = 0; round < rounds; ++round) {
    for (Contestant& one : racing) {
      if (now() - begin > budget) return racing;
      if (one.least > far_behind * best) continue;
      const double calls = std::min<double>(long_enough / std::max(one.least, 1e-9), most_calls);
      one.least = std::min(
          one.least, timed(call, one, scratch, std::max(static_cast<int>(calls), 1), context));
      best = std::min(best, one.least);
    }
  }
  return racing;
}

/// Returns true if calls can be timed: not on the simulator, and not during a stream capture.
bool may_measure(const Context& context) {
  // Simulated kernels have no meaningful time.
  if (context.backend() == Backend::simt) return false;
  const DeviceApi& api = *device_api(context.backend());
  return api.is_capturing == nullptr || !api.is_capturing(context.device().index, context.stream());
}

/// Returns true if `bytes` are at most a quarter of the memory: the program's own need is unknown.
bool has_room(double bytes, const Context& context) {
  constexpr double share = 0.25;
  const double memory = context.backend() == Backend::cpu
                            ? static_cast<double>(available_memory())
                            : static_cast<double>(context.info().memory_bytes);
  return bytes <= share * memory;
}

/// Returns a context for the trials, so that workspace, tables and streams of rejected kernels are
/// released with it.
Context trial_of(const Context& context) {
  Context trial = context.backend() == Backend::cuda
                      ? Context::cuda(context.device().index, context.stream())
                  : context.backend() == Backend::cpu ? Context::cpu(context.threads())
                                                      : Context::on_device(context.device());
  trial.set_choice(context.choice());
  trial.set_tuning(Tuning::off);
  return trial;
}

/// Keeps allocations and waits of the measurement from invalidating captures by other threads.
class DuringCaptures {
 public:
  explicit DuringCaptures(const Context& context)
      : exchange_(device_api(context.backend())->exchange_capture_mode) {
    if (exchange_ != nullptr) before_ = exchange_(relaxed_captures);
  }
  DuringCaptures(const DuringCaptures&) = delete;
  DuringCaptures& operator=(const DuringCaptures&) = delete;
  ~DuringCaptures() {
    if (exchange_ != nullptr) exchange_(before_);
  }

 private:
  int (*exchange_)(int mode);
  int before_ = 0;
};

/// True while a call is timed; calls made within it are not timed themselves.
thread_local bool is_measuring = false;

Tuned measure(ObservedCall& call, Context& context) {
  std::vector<ObservedCall::Candidate> candidates = call.candidates();
  if (candidates.empty() || is_measuring || !may_measure(context)) return {};
  const double window = tuning_window * candidates.front().estimate;
  std::erase_if(candidates, [&](const auto& one) { return one.estimate > window; });
  if (!Scratch::is_dense(call) || !has_room(Scratch::bytes(call), context)) return {};
  std::vector<Contestant> raced;
  is_measuring = true;
  try {
    const DuringCaptures allowed(context);
    // Work on the stream may still write the call's inputs.
    context.synchronize();
    Context trial = trial_of(context);
    Scratch scratch(call, trial);
    raced = race(call, candidates, scratch, trial);
    trial.synchronize();
  } catch (const Error&) {  // out of memory for copies
    raced.clear();
  } catch (const std::bad_alloc&) {
    raced.clear();
  } catch (...) {
    is_measuring = false;
    throw;
  }
  is_measuring = false;
  if (raced.empty()) return {};
  // The candidate with the best estimate is first, and wins within the noise of the timings.
  constexpr double clearly = 0.97;
  const Contestant* best = &raced.front();
  for (const Contestant& one : raced) {
    if (one.least < best->least && one.least < clearly * raced.front().least) best = &one;
  }
  Tuned choice{.rung = std::string(best->rung->name), .seconds = {}};
  for (const Contestant& one : raced) choice.seconds.emplace(one.rung->name, one.least);
  return choice;
}

/// Returns false after 1000 measurements of an operator: bounds the time that programs lose whose
/// calls never repeat.
bool may_measure_more(std::string_view op) {
  constexpr int most = 1000;
  static std::mutex guard;
  static auto& counts = *new std::map<std::string, int, std::less<>>;
  const std::lock_guard lock(guard);
  return ++counts[std::string(op)] <= most;
}

const RungInfo* named(const ObservedCall& call, const std::string& name) {
  if (name.empty()) return nullptr;
  const std::vector<ObservedCall::Candidate> candidates = call.candidates();
  const auto found = std::ranges::find(candidates, name,
                                       [](const auto& one) { return std::string(one.rung->name); });
  return found != candidates.end() ? found->rung : nullptr;
}

}  // namespace

/// Logs each distinct call once, up to a limit that bounds the memory of programs whose calls never
/// repeat.
void log_call(const ObservedCall& call, const Context& context) {
  if (!context.logs_calls()) return;
  constexpr std::size_t most_lines = 100'000;
  static std::mutex guard;
  static std::set<std::string>& seen = *new std::set<std::string>;
  std::string line = std::string("rung: call ") + to_string(context.backend()) + ' ' +
                     std::string(call.op()) + ' ' + call.problem() + '\n';
  const std::lock_guard lock(guard);
  if (seen.size() >= most_lines) return;
  const auto [place, is_new] = seen.insert(std::move(line));
  if (is_new) std::fputs(place->c_str(), stderr);
}

std::string tuning_file_path() {
  if (const std::string_view file = variable("RUNG_TUNE_FILE"); !file.empty()) {
    return std::string(file);
  }
  if (const std::string_view cache = variable("XDG_CACHE_HOME"); !cache.empty()) {
    return std::string(cache) + "/rung/tuning.jsonl";
  }
  const std::string_view home = variable("HOME");
  return home.empty() ? "" : std::string(home) + "/.cache/rung/tuning.jsonl";
}

std::string tuning_file_trouble() { return tuning_file().trouble(); }

Tuning default_tuning() {
  const std::string_view requested = variable("RUNG_TUNE");
  if (requested.empty()) return Tuning::off;
  for (const auto& [word, tuning] : tunings) {
    if (word == requested) return tuning;
  }
  throw Error(ErrorCode::invalid_argument, "RUNG_TUNE is '" + std::string(requested) +
                                               "'; accepted: off, remembered, first_call");
}

bool calls_are_logged() {
  const std::string_view requested = variable("RUNG_LOG");
  if (requested.empty()) return false;
  if (requested == "calls") return true;
  throw Error(ErrorCode::invalid_argument,
              "RUNG_LOG is '" + std::string(requested) + "'; accepted: calls");
}

Tuned remembered_choice(const ObservedCall& call, const Context& context) {
  Tuned choice = tuning_file().find(key_of(call, context));
  return named(call, choice.rung) != nullptr ? choice : Tuned{};
}

const RungInfo* remembered_rung(const ObservedCall& call, const Context& context) {
  if (context.tuning() == Tuning::off) return nullptr;
  return named(call, tuning_file().find(key_of(call, context)).rung);
}

Tuned tune_again(ObservedCall& call, Context& context) {
  Tuned choice = measure(call, context);
  if (!choice.rung.empty()) tuning_file().add(key_of(call, context), choice, true);
  return choice;
}

const RungInfo* tuned_rung(ObservedCall& call, Context& context) {
  if (context.tuning() == Tuning::off) return nullptr;
  const TuningKey key = key_of(call, context);
  if (const RungInfo* known = named(call, tuning_file().find(key).rung)) return known;
  if (context.tuning() != Tuning::first_call || is_measuring) return nullptr;
  // One measurement at a time: concurrent ones would disturb each other, and two equal calls must
  // not choose differently.
  static std::mutex measuring;
  const std::lock_guard lock(measuring);
  if (const RungInfo* known = named(call, tuning_file().find(key).rung)) return known;
  if (!may_measure_more(call.op())) return nullptr;
  const Tuned choice = measure(call, context);
  if (choice.rung.empty()) return nullptr;
  if (const RungInfo* held = named(call, tuning_file().add(key, choice, false).rung)) return held;
  // Replaces an entry that names no kernel of this call.
  return named(call, tuning_file().add(key, choice, true).rung);
}

}  // namespace detail
}  // namespace rung
