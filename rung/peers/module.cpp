// SPDX-License-Identifier: Apache-2.0
// Paths of modules, and selection of the variant to load.
#include "rung/peers/module.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include "rung/cpu/isa.hpp"

namespace rung::peers {

const char* module_isa() {
#if defined(__x86_64__)
  return cpu::isa() == cpu::Isa::avx512 ? "avx512" : "avx2";
#else
  return "baseline";
#endif
}

std::string module_path(const std::string& name) {
  std::string file = "librung_peer_" + name + ".so";
  Dl_info here;
  static const int anchor = 0;
  if (dladdr(&anchor, &here) == 0 || here.dli_fname == nullptr) return file;
  const std::string self = here.dli_fname;
  const std::size_t slash = self.rfind('/');
  if (slash == std::string::npos) return file;
  const std::string folder = self.substr(0, slash + 1);
  // Installed modules have their own folder: they are not libraries to link with.
  const std::string installed = folder + "rung/" + file;
  return access(installed.c_str(), F_OK) == 0 ? installed : folder + file;
}

std::string isa_module_path(const std::string& name) {
  return module_path(name + "_" + module_isa());
}

Support isa_modules_present() {
#if defined(__x86_64__)
  if (cpu::isa() == cpu::Isa::scalar) return unsupported("the peer is built for AVX2 and AVX-512");
#endif
  return supported;
}

std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace rung::peers
