// SPDX-License-Identifier: Apache-2.0
// Reading and appending measured choices. Whatever a line may be - torn, of another version, of
// another program - it is skipped, or names a kernel that tuning.cpp looks for among the call's.
#include "rung/core/tuning_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace rung::detail {
namespace {

/// A file of more bytes is none of ours, or was never cleared: the rest is not read.
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
  // A name that is no UTF-8 (of a device, say) must not keep the rest from being written.
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

/// A descriptor that is closed, and with it unlocked, at the end of its scope.
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

/// Reads from `begin` on; stops early where reading fails.
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
  // Not blocking: the path may be a pipe's.
  const Descriptor file(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file.is_open() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  // A file that was replaced or cut is read anew.
  if (status.st_ino != file_ || status.st_size < read_) read_ = 0;
  file_ = status.st_ino;
  const std::string text =
      read_from(file.get(), read_, std::min<long long>(status.st_size, most_bytes));
  // A line without its end is still being written.
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos;
       begin = end + 1, end = text.find('\n', begin)) {
    auto entry = parsed(std::string_view(text).substr(begin, end - begin));
    if (entry) choices_.insert_or_assign(std::move(entry->first), std::move(entry->second));
  }
  // Nobody writes lines so long: skipped, or every call would read it again.
  if (text.size() - begin > longest_line) begin = text.size();
  read_ += static_cast<long long>(begin);
}

void TuningFile::append(const std::string& line) {
  trouble_.clear();
  if (path_.empty()) {
    trouble_ = "neither RUNG_TUNE_FILE, XDG_CACHE_HOME nor HOME names a place for it";
    return;
  }
  std::error_code none;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), none);
  const auto fail = [&](const char* what) {
    trouble_ = std::string(what) + " " + path_ + ": " + std::strerror(errno);
  };
  const Descriptor file(
      open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644));
  if (!file.is_open()) return fail("cannot open");
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return fail("cannot look at");
  if (!S_ISREG(status.st_mode)) {
    trouble_ = path_ + " is no file";
    return;
  }
  while (flock(file.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return fail("cannot lock");
  }
  if (fstat(file.get(), &status) != 0) return fail("cannot look at");
  // Whoever wrote last may have been stopped in the middle of a line.
  char last = '\n';
  if (status.st_size > 0 && pread(file.get(), &last, 1, status.st_size - 1) != 1) {
    return fail("cannot read");
  }
  const std::string text = last == '\n' ? line : '\n' + line;
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = write(file.get(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail("cannot write");
    done += static_cast<std::size_t>(count);
  }
}

Tuned TuningFile::find(const TuningKey& key) {
  const std::lock_guard lock(guard_);
  auto found = choices_.find(key);
  if (found == choices_.end()) {
    read_new_lines();
    found = choices_.find(key);
  }
  return found != choices_.end() ? found->second : Tuned{};
}

void TuningFile::add(const TuningKey& key, const Tuned& choice) {
  const std::lock_guard lock(guard_);
  choices_.insert_or_assign(key, choice);
  append(line_of(key, choice));
}

std::string TuningFile::trouble() {
  const std::lock_guard lock(guard_);
  return trouble_;
}

}  // namespace rung::detail
