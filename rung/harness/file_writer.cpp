// SPDX-License-Identifier: Apache-2.0
// Output files that appear complete or not at all.
#include "rung/harness/file_writer.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "rung/core/error.hpp"

namespace rung {
namespace {

constexpr std::size_t max_transfer = std::size_t{1} << 30;  // Linux writes at most 2 GiB at once

[[noreturn]] void fail(const std::string& path, const char* action) {
  const int number = errno;
  throw Error(ErrorCode::io, path + ": cannot " + action + ": " + std::strerror(number));
}

void write_all(int descriptor, const std::string& path, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t put = ::write(descriptor, at, std::min(bytes, max_transfer));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail(path, "write");
    at += put;
    bytes -= static_cast<std::size_t>(put);
  }
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// Returns the path that a symbolic link at `path` with the target `text` resolves to.
std::string linked_from(const std::string& path, const std::string& text) {
  if (text[0] == '/') return text;
  return (folder_of(path) + "/").append(text);
}

/// Returns an unpredictable file name in `folder`, short even if the target's name is long.
std::string random_name(const std::string& folder) {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) fail(folder, "draw a temporary name");
  char name[32];
  std::snprintf(name, sizeof name, "/.rung-%016llx", static_cast<unsigned long long>(number));
  return folder + name;
}

/// Blocks SIGINT, SIGTERM and SIGHUP while a file has its temporary name.
class SignalsDeferred {
 public:
  SignalsDeferred() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  SignalsDeferred(const SignalsDeferred&) = delete;
  SignalsDeferred& operator=(const SignalsDeferred&) = delete;
  ~SignalsDeferred() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

/// Returns the descriptor if `path` names one of this process's descriptors ("/proc/self/fd/1", or
/// a link to it such as /dev/stdout), else -1. Such a path must not be resolved to the file behind
/// it: replacing that file would detach it from the process that opened it, such as a redirecting
/// shell.
int own_descriptor(std::string path) {
  for (int links = 0; links < 40; ++links) {
    const int link = open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (link < 0) return -1;
    struct stat status {};
    struct statfs system {};
    const bool known = fstat(link, &status) == 0 && fstatfs(link, &system) == 0;
    ::close(link);
    if (!known || !S_ISLNK(status.st_mode)) return -1;
    if (system.f_type == PROC_SUPER_MAGIC) {
      struct stat own {};
      struct stat folder {};
      if (stat("/proc/self/fd", &own) != 0 || stat(folder_of(path).c_str(), &folder) != 0)
        return -1;
      if (own.st_ino != folder.st_ino || own.st_dev != folder.st_dev) return -1;
      return std::atoi(path.c_str() + path.rfind('/') + 1);
    }
    char next[PATH_MAX];
    const ssize_t length = readlink(path.c_str(), next, sizeof next);
    if (length <= 0 || length == sizeof next) return -1;
    const std::string text(next, static_cast<std::size_t>(length));
    path = linked_from(path, text);
  }
  return -1;
}

/// Returns the path with all symbolic links resolved, the last component included; a dangling link
/// resolves to the file that it would create.
std::string resolved(std::string path) {
  for (int links = 0; links < 40; ++links) {
    const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr),
                                                           &std::free);
    if (real != nullptr) return real.get();
    char next[PATH_MAX];
    const ssize_t length = readlink(path.c_str(), next, sizeof next);
    if (length <= 0 || length == sizeof next) return path;
    const std::string text(next, static_cast<std::size_t>(length));
    path = linked_from(path, text);
  }
  return path;
}

}  // namespace

FileWriter::FileWriter(std::string path) : path_(std::move(path)) {
  if (const int own = own_descriptor(path_); own >= 0) {
    direct_ = true;
    descriptor_ = fcntl(own, F_DUPFD_CLOEXEC, 0);
    if (descriptor_ < 0) fail(path_, "open");
    return;
  }
  target_ = resolved(path_);
  struct stat status {};
  if (stat(target_.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) {
      errno = EISDIR;
      fail(path_, "write");
    }
    if (!S_ISREG(status.st_mode)) {
      direct_ = true;
      descriptor_ = open(target_.c_str(), O_WRONLY | O_CLOEXEC);
      if (descriptor_ < 0) fail(path_, "open");
      return;
    }
    // rename() would replace even a write-protected file.
    if (faccessat(AT_FDCWD, target_.c_str(), W_OK, AT_EACCESS) != 0) fail(path_, "write");
  }
  open_aside(folder_of(target_));
  keep_attributes();
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void FileWriter::open_aside(const std::string& folder) {
  descriptor_ = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  nameless_ = descriptor_ >= 0;
  if (nameless_) return;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) fail(path_, "create");
  std::string name = random_name(folder);
  descriptor_ = open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(path_, "create");
  temporary_ = std::move(name);
}

/// Applies the mode and owner of the file about to be replaced to the new one.
void FileWriter::keep_attributes() {
  struct stat old {};
  struct stat mine {};
  if (stat(target_.c_str(), &old) != 0) return;
  if (fstat(descriptor_, &mine) != 0) fail(path_, "examine");
  if (old.st_uid != mine.st_uid || old.st_gid != mine.st_gid) {
    in_place_ = fchown(descriptor_, old.st_uid, old.st_gid) != 0;
  }
  // After the owner: changing the owner clears set-user-ID bits.
  if (!in_place_ && fchmod(descriptor_, old.st_mode & 07777U) != 0) fail(path_, "keep the mode of");
}

void FileWriter::write(const void* from, std::size_t bytes) {
  write_all(descriptor_, path_, from, bytes);
}

void FileWriter::commit() {
  if (!direct_) {
    if (fsync(descriptor_) != 0) fail(path_, "write");
    put_in_place();
  }
  // A full disk may be reported only by close().
  if (::close(std::exchange(descriptor_, -1)) != 0) fail(path_, "write");
}

void FileWriter::put_in_place() {
  if (in_place_) {
    const int target = open(target_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (target < 0) fail(path_, "write");
    std::string part(std::size_t{1} << 20, '\0');
    off_t at = 0;
    try {
      for (ssize_t got = 1; got > 0; at += got) {
        got = pread(descriptor_, part.data(), part.size(), at);
        if (got < 0) fail(path_, "read back");
        write_all(target, path_, part.data(), static_cast<std::size_t>(got));
      }
    } catch (...) {
      ::close(target);
      throw;
    }
    if (::close(target) != 0) fail(path_, "write");
    return;
  }
  const SignalsDeferred deferred;
  if (nameless_) {
    std::string name = random_name(folder_of(target_));
    const std::string self = "/proc/self/fd/" + std::to_string(descriptor_);
    if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0)
      fail(path_, "create");
    temporary_ = std::move(name);
  }
  if (rename(temporary_.c_str(), target_.c_str()) != 0) fail(path_, "create");
  temporary_.clear();
}

void write_file(const std::string& path, std::string_view content) {
  FileWriter file(path);
  file.write(content);
  file.commit();
}

}  // namespace rung
