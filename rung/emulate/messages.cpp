// SPDX-License-Identifier: Apache-2.0
// Compiler messages about rewritten sources, in terms of the original source.
#include "rung/emulate/messages.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "rung/core/error.hpp"
#include "rung/core/text.hpp"
#include "rung/emulate/process.hpp"

namespace rung::emulate {
namespace {

constexpr std::string_view error_mark = ": error: ";

/// Returns the array's type, such as "float [n]", for a message about a shared array with a
/// nonconstant extent; otherwise "".
std::string variable_extent(const std::string& message) {
  if (message.find("variably modified type") == std::string::npos) return "";
  const std::size_t open = message.find("\u2018"), close = message.find("\u2019");
  if (open == std::string::npos || close == std::string::npos) return "an array";
  return message.substr(open + 3, close - open - 3);
}

/// Returns the name of the NVIDIA or graphics library to which a header belongs; null if there is
/// none.
const char* library_of(const std::string& header) {
  static constexpr std::pair<const char*, const char*> libraries[] = {
      {"thrust/", "Thrust"}, {"cub/", "CUB"},          {"cublasXt", "cuBLAS"},
      {"cufft", "cuFFT"},    {"cusparse", "cuSPARSE"}, {"cusolver", "cuSOLVER"},
      {"cudnn", "cuDNN"},    {"npp", "NPP"},           {"nvjpeg", "nvJPEG"},
      {"nvrtc", "NVRTC"},    {"nccl", "NCCL"},         {"cutlass/", "CUTLASS"},
      {"cute/", "CUTLASS"},  {"GL/", "OpenGL"},        {"EGL/", "EGL"}};
  for (const auto& [prefix, name] : libraries) {
    if (header.starts_with(prefix)) return name;
  }
  return nullptr;
}

[[noreturn]] void refuse_library(const std::string& file, const std::string& header,
                                 const char* library) {
  throw Error(ErrorCode::not_available,
              fmt::format("{} includes {}, of {}: it is no part of the simulated GPU, which has "
                          "CUDA's runtime, cuBLAS, and some of CUB and Thrust",
                          printable(file), header, library));
}

}  // namespace

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void explain_missing_header(std::vector<std::string> command, const std::string& file,
                            const std::string& stem) {
  command.insert(command.end(), {"-M", "-MG", "-w", file, "-o", stem + ".d"});
  if (run_program(command).exit_code != 0) return;
  std::istringstream headers(read_file(stem + ".d"));
  for (std::string header; headers >> header;) {
    const char* library = library_of(header);
    if (library != nullptr) refuse_library(file, header, library);
  }
}

void refuse_libraries(const std::string& file, const std::string& preprocessed,
                      const std::string& own) {
  constexpr std::string_view marker = "\n# 1 \"";
  for (std::size_t at = 0; (at = preprocessed.find(marker, at)) != std::string::npos;) {
    at += marker.size();
    const std::string path = preprocessed.substr(at, preprocessed.find('"', at) - at);
    const std::string header = std::filesystem::path(path).filename();
    const char* const library = library_of(header);
    // A program may have its own header with this name; line markers of system headers end with 3.
    const bool system = preprocessed.compare(at + path.size(), 5, "\" 1 3") == 0;
    if (library != nullptr && system && !path.starts_with(own)) {
      refuse_library(file, header, library);
    }
  }
}

bool speaks_of_rewriting(const std::string& messages) {
  for (const char* ours : {"rung_cuda/launch.h", "rung_type_of_", "rung_shared_"}) {
    if (messages.find(ours) != std::string::npos) return true;
  }
  return false;
}

std::string explained(const std::string& messages, const std::string& plain_messages) {
  struct Message {
    std::string place;  // file:line
    std::string line;
  };
  std::vector<Message> errors;
  // Arrays with a nonconstant extent, by source location.
  std::map<std::string, std::string> types;
  std::istringstream lines(plain_messages);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t mark = line.find(error_mark);
    if (mark == std::string::npos) continue;
    // The user has not specified this option.
    constexpr std::string_view option = " [-fpermissive]";
    if (line.ends_with(option)) line.resize(line.size() - option.size());
    const std::string place = line.substr(0, line.rfind(':', mark - 1));
    if (messages.find(place + ":") == std::string::npos) continue;
    if (std::string type = variable_extent(line); !type.empty()) types.emplace(place, type);
    errors.push_back({place, line});
  }
  std::string text;
  std::set<std::string> told;  // locations already reported
  for (const auto& [place, line] : errors) {
    const auto found = types.find(place);
    const std::string type = found != types.end() ? found->second : "";
    if (type.empty() && speaks_of_rewriting(line)) continue;
    if (!told.insert(place).second) continue;
    if (line.find("launch_shape(") != std::string::npos) {
      text += place + ": error: <<< >>> takes a grid and a block (dim3), optionally followed by " +
              "bytes of dynamic shared memory and a stream\n";
      continue;
    }
    text += type.empty() ? line + "\n"
                         : fmt::format(
                               "{}: error: a __shared__ array needs a constant extent, unlike "
                               "{}: use a constant, or extern __shared__ and the third "
                               "argument of the launch\n",
                               place, type);
  }
  return text;
}

}  // namespace rung::emulate
