// SPDX-License-Identifier: Apache-2.0
// Reads regular files; every failure is an Error that names the file.
#include "rung/harness/file_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "rung/core/error.hpp"

namespace rung {
namespace {

[[noreturn]] void fail_system(const std::string& path, const char* action) {
  const int number = errno;
  fail_file(path, std::string("cannot ") + action + ": " + std::strerror(number));
}

constexpr std::size_t largest_transfer = std::size_t{1} << 30;  // Linux reads at most 2 GiB at once

}  // namespace

void fail_file(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::io, path + ": " + what);
}

FileReader::FileReader(std::string path)
    : path_(std::move(path)), descriptor_(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_ < 0) fail_system(path_, "open");
}
FileReader::~FileReader() { ::close(descriptor_); }

std::size_t FileReader::size() const {
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) fail_system(path_, "examine");
  if (!S_ISREG(status.st_mode)) fail_file(path_, "not a regular file");
  return static_cast<std::size_t>(status.st_size);
}

void FileReader::read(void* to, std::size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::read(descriptor_, at, std::min(bytes, largest_transfer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_system(path_, "read");
    if (got == 0) fail_file(path_, "truncated: " + std::to_string(bytes) + " bytes are missing");
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
}

}  // namespace rung
