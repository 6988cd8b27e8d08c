// SPDX-License-Identifier: Apache-2.0
// Writes the toolkit folder. Its libraries are linker scripts that name stubs: shared libraries
// without code, which have the symbols of rung's libraries and an absolute path as SONAME. Any
// linker can link a program with these stubs, and the program finds rung's libraries without an
// rpath.
#include "rung/emulate/toolkit.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <vector>

#include "rung/core/error.hpp"
#include "rung/core/version.h"
#include "rung/emulate/home.hpp"
#include "rung/emulate/messages.hpp"
#include "rung/emulate/process.hpp"

namespace rung::emulate {
namespace {

namespace fs = std::filesystem;

constexpr const char* stubbed[] = {"librung_emulate.so", "librung.so", "librung_thread.so"};

fs::path cache_folder() {
  for (const auto& [variable, below] :
       {std::pair{"XDG_CACHE_HOME", "rung"}, std::pair{"HOME", ".cache/rung"}}) {
    const char* const base = std::getenv(variable);
    if (base == nullptr || *base != '/') continue;
    const fs::path folder = fs::path(base) / below;
    std::error_code failed;
    fs::create_directories(folder, failed);
    if (!failed && access(folder.c_str(), W_OK) == 0) return folder;
  }
  const fs::path folder =
      fs::temp_directory_path() / fmt::format("rung-{}", static_cast<unsigned>(getuid()));
  fs::create_directories(folder);
  return folder;
}

/// Returns a text that identifies the folder's contents: if it differs, the folder must be
/// rewritten.
std::string stamp_of(const Home& home) {
  std::string stamp = fmt::format("{} {} {}\n", toolkit_version(), home.program, home.include);
  for (const char* name : stubbed) {
    const fs::path library = fs::canonical(fs::path(home.libraries) / name);
    stamp += fmt::format("{} {} {}\n", library.string(), fs::file_size(library),
                         fs::last_write_time(library).time_since_epoch().count());
  }
  return stamp;
}

void run(const std::vector<std::string>& command, const std::string& folder) {
  const std::string errors = folder + "/errors";
  if (run_program(command, {}, 0, errors).exit_code == 0) return;
  throw Error(ErrorCode::not_available,
              fmt::format("nvcc: {} has failed: {}", command.front(), read_file(errors)));
}

/// Returns assembly that defines a library's exported symbols with their types and sizes.
std::string stub_source(const std::string& symbols) {
  std::string text, data, thread;
  std::set<std::string> known;
  std::istringstream lines(symbols);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string number, value, size, type, bind, visibility, section, name;
    fields >> number >> value >> size >> type >> bind >> visibility >> section >> name;
    name = name.substr(0, name.find('@'));
    if (section.empty() || section == "UND" || section == "Ndx" || name.empty() ||
        (bind != "GLOBAL" && bind != "WEAK" && bind != "UNIQUE") || !known.insert(name).second) {
      continue;
    }
    const unsigned long bytes = std::strtoul(size.c_str(), nullptr, 0);
    const bool function = type == "FUNC" || type == "IFUNC" || type == "NOTYPE";
    std::string& to = function ? text : type == "TLS" ? thread : data;
    to += fmt::format(".{0} {1}\n.type {1}, {2}\n.size {1}, {3}\n{1}:\n",
                      bind == "WEAK" ? "weak" : "globl", name,
                      function           ? "@function"
                      : type == "TLS"    ? "@tls_object"
                      : bind == "UNIQUE" ? "@gnu_unique_object"
                                         : "@object",
                      bytes);
    to += function ? ".byte 0\n" : fmt::format(".zero {}\n", std::max(bytes, 1UL));
  }
  return ".text\n" + text + ".data\n.balign 64\n" + data +
         ".section .tdata,\"awT\",@progbits\n.balign 64\n" + thread +
         ".section .note.GNU-stack,\"\",@progbits\n";
}

void write_text(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

void write_stub(const Home& home, const char* name, const std::string& folder) {
  // Includes the ABI version in the file name, as the loader searches for it.
  std::string library = fmt::format("{}/{}.{}", home.libraries, name, RUNG_VERSION_MAJOR);
  if (!fs::exists(library)) library = fmt::format("{}/{}", home.libraries, name);
  const std::string symbols = folder + "/symbols", source = folder + "/stub.s";
  // A shell redirects the output, since readelf has no option for an output file.
  run({"/bin/sh", "-c", "readelf --dyn-syms -W \"$1\" >\"$2\"", "sh", library, symbols}, folder);
  write_text(source, stub_source(read_file(symbols)));
  run({host_compiler(), "-shared", "-nostdlib", "-Wl,-soname," + library, source, "-o",
       folder + "/lib64/stubs/" + name},
      folder);
}

void write_libraries(const Home& home, const std::string& folder, const std::string& final_path) {
  const fs::path libraries = fs::path(folder) / "lib64";
  fs::create_directories(libraries / "stubs");
  for (const char* name : stubbed) write_stub(home, name, folder);
  std::string stubs;
  for (const char* name : stubbed) stubs += fmt::format(" {}/lib64/stubs/{}", final_path, name);
  const std::string runtime = fmt::format(
      "/* GNU ld script: the simulated GPU's runtime. */\nINPUT( {}/librung_hooks.a{} )\n",
      home.libraries, stubs);
  for (const char* name : {"libcudart.so", "libcudart_static.a", "stubs/libcuda.so", "libcurand.so",
                           "libcurand_static.a", "libnvToolsExt.so", "libculibos.a"}) {
    write_text(libraries / name, runtime);
  }
  const std::string blas = fmt::format(
      "/* GNU ld script: cuBLAS of the simulated GPU. */\nINPUT( {0}/librung_cublas.a "
      "{0}/librung_hooks.a{1} )\n",
      home.libraries, stubs);
  for (const char* name :
       {"libcublas.so", "libcublas_static.a", "libcublasLt.so", "libcublasLt_static.a"}) {
    write_text(libraries / name, blas);
  }
  write_text(libraries / "libcudadevrt.a", "!<arch>\n");
}

void write_folder(const Home& home, const std::string& folder, const std::string& final_path) {
  write_libraries(home, folder, final_path);
  const fs::path root(folder);
  write_text(root / "bin/nvcc",
             fmt::format("#!/bin/sh\nexec {} nvcc \"$@\"\n", shell_quoted(home.program)));
  fs::permissions(root / "bin/nvcc", fs::perms::owner_all | fs::perms::group_read |
                                         fs::perms::group_exec | fs::perms::others_read |
                                         fs::perms::others_exec);
  fs::create_directories(root / "nvvm/libdevice");  // required by CMake
  fs::create_directories(root / "include");
  fs::create_directory_symlink(home.include + "/rung", root / "include/rung");
  for (const auto& one : fs::directory_iterator(home.include + "/rung/emulate/include")) {
    fs::create_symlink(one.path(), root / "include" / one.path().filename());
  }
  write_text(root / "version.json",
             fmt::format("{{\"cuda\": {{\"name\": \"CUDA of rung's simulated GPU\", \"version\": "
                         "\"{}\"}}}}\n",
                         toolkit_version()));
  write_text(root / "stamp", stamp_of(home));
}

}  // namespace

std::string toolkit_version() { return "13.0.0"; }

std::string toolkit_folder() {
  const Home home = find_home();
  const fs::path cache = cache_folder();
  const fs::path folder =
      cache / fmt::format("cuda-{:016x}", std::hash<std::string>()(home.libraries + home.program));
  const std::string stamp = stamp_of(home);
  if (read_file(folder / "stamp") == stamp) return folder;
  // Lock, so that concurrent compilers of a build wait for the first.
  const int lock = open((folder.string() + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (lock >= 0) flock(lock, LOCK_EX);
  if (read_file(folder / "stamp") != stamp) {
    const std::string fresh = fmt::format("{}.{}", folder.string(), getpid());
    std::error_code ignored;
    fs::remove_all(fresh, ignored);
    fs::create_directories(fresh);
    write_folder(home, fresh, folder.string());
    fs::remove_all(folder, ignored);
    fs::rename(fresh, folder);
  }
  if (lock >= 0) close(lock);
  return folder;
}

}  // namespace rung::emulate
