// SPDX-License-Identifier: Apache-2.0
// EigenRows: a peer that computes contiguous rows by Eigen expressions. The expressions are in a
// module of the operator (eigen_rows_module.hpp), compiled once per instruction set because Eigen
// selects instructions at compile time; the variant for the instruction set of our own rungs is
// loaded.
#pragma once

#include <string>

#include "rung/core/dynamic_library.hpp"
#include "rung/peers/module.hpp"

namespace rung::peers {

/// Peer whose module computes rows. Arguments<T> is the plain struct of arguments that the module
/// receives for rows of T, float or double.
template <template <class> class Arguments>
class EigenRows {
 public:
  /// Loads librung_peer_MODULE_ISA.so, where MODULE is `module`, or the file that the environment
  /// variable `variable` names.
  EigenRows(const char* variable, const char* module)
      : library_(variable, {isa_module_path(module)}) {
    library_.require(run_f32_, "rung_eigen_f32");
    library_.require(run_f64_, "rung_eigen_f64");
    library_.require(version_, "rung_eigen_version");
  }

  [[nodiscard]] Support present() const {
    if (const Support here = isa_modules_present(); !here) return here;
    return library_.present();
  }
  [[nodiscard]] std::string about() const {
    return "Eigen " + version_text(version_()) + ", " + module_isa() + ", OpenMP";
  }
  void run(const Arguments<float>& call) const { run_f32_(&call); }
  void run(const Arguments<double>& call) const { run_f64_(&call); }

 private:
  DynamicLibrary library_;
  void (*run_f32_)(const Arguments<float>*);
  void (*run_f64_)(const Arguments<double>*);
  int (*version_)();  // 30400 for 3.4.0
};

}  // namespace rung::peers
