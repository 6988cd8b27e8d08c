// SPDX-License-Identifier: Apache-2.0
// Reports: failures of kernels immediately, findings of the recorder at the end; also to a file
// whose name `rung emulate` passes.
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rung/emulate/runtime/advise.hpp"
#include "rung/emulate/runtime/api.hpp"
#include "rung/emulate/runtime/environment.hpp"
#include "rung/emulate/runtime/kernels.hpp"
#include "rung/emulate/runtime/memory.hpp"
#include "rung/emulate/runtime/model.hpp"
#include "rung/emulate/runtime/repetition.hpp"
#include "rung/emulate/runtime/stream_order.hpp"
#include "rung/emulate/runtime/tasks.hpp"
#include "rung/simt/record.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::cuda {
namespace {

namespace record = simt::record;
using record::Finding;
using record::Kind;

std::mutex mutex;
std::optional<Finding> refused;      // a rejected launch whose error the program has not queried
std::vector<Finding> ignored_calls;  // errors that the program has not queried
std::vector<Finding> short_copies;   // copies whose size may count elements; checked later
thread_local std::string reason;     // reason for the last failure; "": unknown
// Failures that were reported immediately, by location.
std::map<std::pair<std::string, int>, std::string> told;

/// Parses "block (1, 2, 3)" in a message of the simulator. `word`: the word before the parenthesis.
simt::dialect::uint3 coordinates(const std::string& message, const char* word) {
  simt::dialect::uint3 v{};
  const std::size_t at = message.find(word);
  if (at != std::string::npos) {
    std::sscanf(message.c_str() + at + std::strlen(word), " (%u, %u, %u)", &v.x, &v.y, &v.z);
  }
  return v;
}

/// Sets the finding's location from "file:line".
void set_place(Finding& finding, const std::string& where) {
  const std::size_t colon = where.rfind(':');
  if (colon == std::string::npos) return;
  finding.file = record::shown_path(where.substr(0, colon));
  finding.line = std::atoi(where.c_str() + colon + 1);
}

/// Sets the finding's other location to the allocation of the memory.
void set_allocation(Finding& finding, const record::Memory& memory) {
  Finding there;
  set_place(there, simt::source_line(static_cast<const char*>(memory.code) - 1));
  finding.other_file = there.file;
  finding.other_line = there.line;
}

struct Meaning {
  const char* words;
  Kind kind;
  cudaError_t error;
};
// Kinds of the simulator's messages; the first matching entry applies.
constexpr Meaning meanings[] = {
    {"deadlock", Kind::deadlock, cudaErrorLaunchTimeout},
    {"Assertion", Kind::launch, cudaErrorAssert},
    {"misaligned", Kind::misaligned, cudaErrorMisalignedAddress},
    {"invalid address", Kind::out_of_bounds, cudaErrorIllegalAddress},
    {"illegal address", Kind::out_of_bounds, cudaErrorIllegalAddress},
    {"stack overflow", Kind::launch, cudaErrorIllegalAddress},
    {"outside the block's shared", Kind::out_of_bounds, cudaErrorIllegalAddress},
    {"mask", Kind::warp_sync, cudaErrorLaunchFailure},
    {"lanes", Kind::warp_sync, cudaErrorLaunchFailure},
    {"barrier", Kind::barrier, cudaErrorLaunchFailure},
    {"", Kind::launch, cudaErrorLaunchFailure},
};

// Text of the findings, for a program whose heap is damaged. Updated under the session's lock.
char text_so_far[64 << 10];
std::size_t text_length = 0;
void keep_text(const Finding& finding) {
  const std::string text = "rung: " + record::to_text(finding) + "\n";
  if (text.size() >= sizeof text_so_far - text_length) return;
  std::memcpy(text_so_far + text_length, text.c_str(), text.size() + 1);
  text_length += text.size();
}

/// Returns true if `rung emulate` itself reports the findings, once for several runs.
bool told_later() {
  static const bool later = [] {
    const char* value = std::getenv("RUNG_EMULATE_TELL_LATER");
    return value != nullptr && value[0] == '1';
  }();
  return later;
}

void tell(const std::string& text) {
  if (!told_later()) std::fprintf(stderr, "rung: %s\n", text.c_str());
}

/// Recording session from the program's load to its exit of any kind.
class Session {
 public:
  Session() {
    if (const char* path = std::getenv("RUNG_EMULATE_REPORT")) path_ = path;
    const auto wanted = [](const char* name) {
      const char* value = std::getenv(name);
      return value != nullptr && value[0] == '1';
    };
    record::begin({.counters = wanted("RUNG_EMULATE_COUNTERS"),
                   .checks = wanted("RUNG_EMULATE_CHECKS"),
                   .chip = modeled_caches(),
                   .leaks = wanted("RUNG_EMULATE_LEAKS"),
                   .on_finding = keep_text});
    pthread_atfork(nullptr, nullptr, begin_in_child);
  }
  ~Session() {
    stop_tasks();
    finish();
    const int code = program_options().exit_code;
    if (code == 0 || findings_ == 0) return;
    std::fflush(nullptr);
    _exit(code);
  }

  void finish() {
    std::fflush(stdout);
    {
      const std::lock_guard lock(mutex);
      if (done_) return;
      done_ = true;
      report_unrecorded_events();
      if (refused.has_value()) {
        const std::string text = record::to_text(*refused);
        tell(text);
        record::add(*refused);
        told[{refused->file, refused->line}] = text;
      }
      for (const Finding& one : ignored_calls) record::add(one);
      for (Finding& one : short_copies) {
        advise_short_copy(one);
        if (!one.advice.empty()) record::add(one);
      }
    }
    record::Report report = record::end();
    advise(report.findings);
    std::vector<Finding> shown = report.findings;
    shorten_repeated(shown);
    std::vector<std::string> texts;
    for (const Finding& one : shown) {
      const auto known = told.find({one.file, one.line});
      const bool new_here = one.kind == Kind::race || known == told.end();
      texts.push_back(new_here ? record::to_text(one) : std::exchange(known->second, ""));
      if (new_here) tell(texts.back());
    }
    report.partly_recorded = partly_recorded();
    for (const record::PartlyRecorded& one : report.partly_recorded) {
      texts.push_back(record::to_text(one));
      tell(texts.back());
    }
    findings_ = report.findings.size();
    if (const std::string& json = program_options().json; !json.empty()) {
      std::ofstream(json) << "{" << record::to_json(report, true) << "}\n";
    }
    if (path_.empty()) return;
    // Child processes of the program write their own files.
    const int descriptor = open(path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (descriptor >= 0) close(descriptor);
    const std::string path = descriptor >= 0 ? path_ : path_ + "." + std::to_string(getpid());
    std::ofstream file(path);
    file << report.findings.size() << "\n" << record::to_json(report, true) << "\n";
    if (!told_later()) return;
    std::ofstream later(path + ".texts");
    for (const std::string& text : texts) later << text << '\0';
  }

 private:
  /// Restarts the session in a child of fork(), which reports only its own findings.
  static void begin_in_child();

  std::string path_;
  std::size_t findings_ = 0;
  bool done_ = false;
};
Session session;

void Session::begin_in_child() {
  if (session.done_) return;
  refused.reset();
  ignored_calls.clear();
  short_copies.clear();
  text_so_far[text_length = 0] = 0;
  record::forget();
}

}  // namespace

void write_report() { session.finish(); }
void hand_over_findings() {
  const std::lock_guard lock(mutex);
  if (refused.has_value()) record::add(*refused);
  refused.reset();
  ignored_calls.clear();
  short_copies.clear();
  told.clear();
  text_so_far[text_length = 0] = 0;
}
const char* findings_as_text() { return text_so_far; }

void note_refused_launch(const LaunchConfig& config, const std::string& why) {
  const std::lock_guard lock(mutex);
  Finding finding;
  finding.kind = Kind::launch;
  finding.kernel = config.name != nullptr ? config.name : "";
  finding.file = record::shown_path(config.place.file_name());
  finding.line = static_cast<int>(config.place.line());
  finding.message = "the launch failed and the program never queried its error: " + why;
  finding.advice = "check cudaGetLastError() after each launch";
  if (why.starts_with("a grid of 0x") || why.find("x0x") != std::string::npos) {
    finding.advice =
        "round the number of blocks up, (n + threads - 1) / threads: a division of integers rounds "
        "down; and check cudaGetLastError() after each launch";
  } else if (why.starts_with("a block of ")) {
    finding.advice =
        "launch smaller blocks, and more of them; and check cudaGetLastError() after each launch";
  }
  refused = finding;
}
void forget_refused_launch() {
  const std::lock_guard lock(mutex);
  refused.reset();
  ignored_calls.clear();
}

void note_reason(std::string why) { reason = std::move(why); }

void ignored(cudaError_t error, const char* call, Place place) {
  const bool of_copies = std::string_view(call).starts_with("cudaMem");
  const std::string why = of_copies ? std::exchange(reason, "") : "";
  // Errors in kernels are always reported.
  if (error == cudaSuccess || simt::in_kernel() || device_failure() != cudaSuccess) return;
  Finding finding;
  finding.kind = Kind::api_call;
  finding.file = place.file_name();
  finding.line = static_cast<int>(place.line());
  finding.message = std::string(call) + " failed and the program never queried its error: " +
                    cudaGetErrorString(error) + (why.empty() ? "" : ": " + why);
  finding.advice = "compare what each call of the runtime returns with cudaSuccess";
  if (const std::size_t kind = why.find("cudaMemcpy"); kind != std::string::npos) {
    finding.advice = "pass " + why.substr(kind) + "; and " + finding.advice;
  } else if (why.find("was freed") != std::string::npos) {
    finding.advice = "free memory after its last use; and " + finding.advice;
  }
  const std::lock_guard lock(mutex);
  ignored_calls.push_back(std::move(finding));
}

cudaError_t report_kernel_failure(const std::string& message) {
  const Meaning* meaning = meanings;
  const std::string what = message.substr(0, message.find('\n'));  // without names of files
  while (what.find(meaning->words) == std::string::npos) ++meaning;
  // The recorder has already reported kernels that it stopped, with more detail.
  bool noted = message.find("illegal address") != std::string::npos;
  std::vector<Finding> known = record::findings_so_far();
  if (meaning->kind == Kind::misaligned) {  // the misaligned access itself may end the kernel
    const auto is_misaligned = [](const Finding& one) { return one.kind == Kind::misaligned; };
    const auto last = std::find_if(known.rbegin(), known.rend(), is_misaligned);
    noted = last != known.rend();
    if (noted) std::swap(*last, known.back());
  }
  std::string text = message;
  if (noted && !known.empty()) {
    // The finding that ended the kernel may be followed by findings about the same statement.
    const auto ends_kernel = [](const Finding& one) {
      return one.kind != Kind::race && one.kind != Kind::uninitialized;
    };
    const auto last = std::find_if(known.rbegin(), known.rend(), ends_kernel);
    if (last != known.rend() && meaning->kind != Kind::misaligned) std::swap(*last, known.back());
    // Prefers the finding about an index outside the array's type to the finding about the invalid
    // address to which the index leads.
    for (Finding& one : known) {
      const bool same = one.line == known.back().line && one.file == known.back().file;
      if (same && one.message.starts_with("index ")) std::swap(one, known.back());
    }
    advise(known.back());
    text = record::to_text(known.back());
  }
  Finding finding;
  finding.kind = meaning->kind;
  finding.block = coordinates(message, "\n  block");
  finding.thread = coordinates(message, ", thread");
  if (const std::size_t at = message.find("\n  kernel "); at != std::string::npos) {
    finding.kernel = message.substr(at + 10, message.find('\n', at + 1) - at - 10);
  }
  std::size_t place = message.rfind("\n  at ");
  place = place == std::string::npos ? message.find(" at ") : place + 2;
  if (place != std::string::npos) {
    const std::string where = message.substr(place + 4);
    set_place(finding, where.substr(0, where.find_first_of(" \n,")));
  }
  finding.message = what;
  if (finding.message.find("copy is on its way") != std::string::npos) {
    finding.advice =
        "wait for the copy before its block ends: for its mbarrier, by wait() of its barrier, or "
        "by the pipeline's consumer_wait()";
    text += "\n  " + finding.advice;
  }
  if (finding.kind == Kind::deadlock) {
    advise_deadlock(finding, message);
    if (!finding.advice.empty()) text += "\n  " + finding.advice;
  }
  tell(text);
  const std::lock_guard lock(mutex);
  told.try_emplace({finding.file, finding.line}, text);
  if (noted && !known.empty()) told.try_emplace({known.back().file, known.back().line}, text);
  if (!noted) record::add(finding);
  return meaning->error;
}

void report_unwritten_copy(const Allocation& memory, std::size_t bytes, const void* code) {
  const record::Memory known = record::find_memory(memory.begin);
  Finding finding;
  finding.kind = Kind::uninitialized;
  finding.message = "a copy to the host of " + std::to_string(bytes) + " bytes that were never " +
                    "written, of " + std::to_string(memory.bytes) + " bytes of " + known.name;
  finding.advice = "let the kernel write its results there, and check its launch for errors";
  set_place(finding, simt::source_line(static_cast<const char*>(code) - 1));
  set_allocation(finding, known);
  record::add(finding);
}

void note_short_copy(const Allocation& memory, std::size_t bytes, const void* code) {
  const std::lock_guard lock(mutex);
  Finding finding;
  finding.kind = Kind::api_call;
  finding.message = "a copy to the host of " + std::to_string(bytes) + " of the " +
                    std::to_string(memory.bytes) + " bytes of an array: its size counts elements";
  set_place(finding, simt::source_line(static_cast<const char*>(code) - 1));
  set_allocation(finding, record::find_memory(memory.begin));
  const bool known = std::any_of(short_copies.begin(), short_copies.end(), [&](const Finding& one) {
    return one.line == finding.line && one.file == finding.file;
  });
  if (!known && finding.file == finding.other_file) short_copies.push_back(std::move(finding));
}

void report_host_access(const Allocation& memory, const char* address, bool writes,
                        const std::string& line) {
  Finding finding;
  finding.kind = Kind::host_access;
  const record::Memory known = record::find_memory(address);
  finding.message = std::string("host code ") + (writes ? "writes" : "reads") + " byte " +
                    std::to_string(address - memory.begin) + " of " + std::to_string(memory.bytes) +
                    " bytes of " + known.name + ", which is memory of the device";
  finding.advice = writes ? "write to memory of the host, and copy that to the device by cudaMemcpy"
                          : "copy it to memory of the host by cudaMemcpy, and read that";
  set_place(finding, line);
  set_allocation(finding, known);
  record::add(finding);
}

void report_misuse(const char* kind, const std::string& message, const void* code) {
  Finding finding;
  finding.kind = std::strcmp(kind, "use_after_free") == 0 ? Kind::use_after_free : Kind::launch;
  finding.message = message;
  set_place(finding, simt::source_line(static_cast<const char*>(code) - 1));
  record::add(finding);
}

}  // namespace rung::cuda
