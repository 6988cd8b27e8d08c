// SPDX-License-Identifier: Apache-2.0
// Reads and appends measured choices. Invalid lines (incomplete, or of another version or program)
// are skipped; tuning.cpp ignores names that are not candidates of the call.
#include "rung/core/tuning_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace rung::detail {
namespace {

/// Limit of the bytes read: a larger file is not a tuning file, or was never cleared.
constexpr long long most_bytes = 64LL << 20;
constexpr std::size_t longest_line = 1 << 20;

std::string line_of(const TuningKey& key, const Tuned& choice) {
  nlohmann::ordered_json line;
  line["rung"] = key.version;
  line["device"] = key.device;
  if (key.threads != 0) line["threads"] = key.threads;
  line["operator"] = key.op;
  line["problem"] = key.problem;
  line["layout"] = key.layout;
  line["kernel"] = choice.rung;
  line["seconds"] = choice.seconds;
  // A name that is not UTF-8, such as a device's, must not prevent writing the rest.
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

std::optional<std::pair<TuningKey, Tuned>> parsed(std::string_view text) {
  const nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
  if (!line.is_object()) return std::nullopt;
  const auto word = [&](const char* name) -> std::string {
    const auto found = line.find(name);
    return found != line.end() && found->is_string() ? found->get<std::string>() : "";
  };
  TuningKey key{.version = word("rung"),
                .device = word("device"),
                .op = word("operator"),
                .problem = word("problem"),
                .layout = word("layout")};
  if (const auto threads = line.find("threads"); threads != line.end()) {
    if (!threads->is_number_integer()) return std::nullopt;
    key.threads = threads->get<int>();
  }
  Tuned choice{.rung = word("kernel"), .seconds = {}};
  if (key.op.empty() || choice.rung.empty()) return std::nullopt;
  if (const auto seconds = line.find("seconds"); seconds != line.end() && seconds->is_object()) {
    for (const auto& [name, value] : seconds->items()) {
      if (value.is_number()) choice.seconds.emplace(name, value.get<double>());
    }
  }
  return std::pair(std::move(key), std::move(choice));
}

/// File descriptor that is closed, and thereby unlocked, at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  [[nodiscard]] int get() const { return number_; }
  [[nodiscard]] bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

/// Reads the bytes [begin, end) of the file; returns fewer if reading fails.
std::string read_from(int file, long long begin, long long end) {
  std::string text(static_cast<std::size_t>(end - begin), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = pread(file, text.data() + done, text.size() - done,
                                static_cast<off_t>(begin + static_cast<long long>(done)));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  text.resize(done);
  return text;
}

}  // namespace

void TuningFile::read_new_lines() {
  if (path_.empty()) return;
  // Nonblocking, since the path may name a pipe.
  const Descriptor file(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file.is_open() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  // Reads a replaced or truncated file from the start.
  if (status.st_ino != file_ || status.st_size < read_) read_ = 0;
  file_ = status.st_ino;
  const std::string text =
      read_from(file.get(), read_, std::min<long long>(status.st_size, most_bytes));
  // A line without its newline is still being written.
  std::size_t begin = 0;
  std::map<TuningKey, Tuned> read;
  for (std::size_t end = text.find('\n'); end != std::string::npos;
       begin = end + 1, end = text.find('\n', begin)) {
    if (end - begin > longest_line) continue;
    auto entry = parsed(std::string_view(text).substr(begin, end - begin));
    if (entry) read.insert_or_assign(std::move(entry->first), std::move(entry->second));
  }
  choices_.merge(read);  // merge() keeps choices already in use by this process
  // Skips a line beyond the limit, which every call would read again.
  if (text.size() - begin > longest_line) begin = text.size();
  read_ += static_cast<long long>(begin);
}

Tuned TuningFile::append(const TuningKey& key, const Tuned& choice, bool replaces) {
  trouble_.clear();
  const auto keep = [&] {
    choices_.insert_or_assign(key, choice);
    return choice;
  };
  const auto fail = [&](const char* what) {
    trouble_ = std::string(what) + " " + path_ + ": " + std::strerror(errno);
    return keep();
  };
  if (path_.empty()) {
    trouble_ = "neither RUNG_TUNE_FILE, XDG_CACHE_HOME nor HOME names a place for it";
    return keep();
  }
  std::error_code none;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), none);
  const Descriptor file(
      open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644));
  if (!file.is_open()) return fail("cannot open");
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return fail("cannot look at");
  if (!S_ISREG(status.st_mode)) {
    trouble_ = path_ + " is no file";
    return keep();
  }
  // Bounded wait: a process that was stopped while it held the lock must not block others.
  constexpr int tries = 50;
  for (int i = 0; flock(file.get(), LOCK_EX | LOCK_NB) != 0; ++i) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || i == tries) return fail("cannot lock");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (!replaces) {
    read_new_lines();
    if (const auto known = choices_.find(key); known != choices_.end()) return known->second;
  }
  if (fstat(file.get(), &status) != 0) return fail("cannot look at");
  if (status.st_size >= most_bytes) {
    trouble_ = path_ + " has 64 MiB, of which no more is read: delete it to go on";
    return keep();
  }
  // Another process may have been stopped in the middle of a line.
  char last = '\n';
  if (status.st_size > 0 && pread(file.get(), &last, 1, status.st_size - 1) != 1) {
    return fail("cannot read");
  }
  const std::string text = (last == '\n' ? "" : "\n") + line_of(key, choice);
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = write(file.get(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail("cannot write");
    done += static_cast<std::size_t>(count);
  }
  return keep();
}

Tuned TuningFile::find(const TuningKey& key) {
  constexpr double often = 1;  // seconds between reads of the file for unknown calls
  const std::lock_guard lock(guard_);
  auto found = choices_.find(key);
  const double now =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  if (found == choices_.end() && (looked_ < 0 || now - looked_ > often)) {
    looked_ = now;
    read_new_lines();
    found = choices_.find(key);
  }
  return found != choices_.end() ? found->second : Tuned{};
}

Tuned TuningFile::add(const TuningKey& key, const Tuned& choice, bool replaces) {
  const std::lock_guard lock(guard_);
  return append(key, choice, replaces);
}

std::string TuningFile::trouble() {
  const std::lock_guard lock(guard_);
  return trouble_;
}

}  // namespace rung::detail
