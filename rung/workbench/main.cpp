// SPDX-License-Identifier: Apache-2.0
// Entry point of the program `rung`; all other files can also be linked into tests.
#include "rung/workbench/command.hpp"
#include "rung/workbench/output.hpp"

int main(int argc, char** argv) {
  return rung::workbench::end_output(rung::workbench::run_program(argc, argv));
}
