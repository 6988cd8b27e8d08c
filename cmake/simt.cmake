# SPDX-License-Identifier: Apache-2.0
# How g++ compiles kernels for the simulated GPU.
#
# Always optimized, and with hooks at every access and every basic block (rung/simt/record/hooks.cpp, not
# libtsan, answers them; a hook that ended a function would have its caller's address), so that one source
# access is one recorded access: no vectorizer may merge several. g++ 12's SLP vectorizer would moreover take
# "aligned: one wide load, else single ones" for always aligned. Debug information is for the lines of what is
# found: of statements, not of variables. Under the sanitizers kernels stay without hooks, and are optimized as
# the rest is: it is compiling them that takes time there, not running them.
function(rung_compile_for_simulator target)
  target_compile_definitions(${target} PRIVATE RUNG_SIMT=1)
  target_compile_options(${target} PRIVATE -fno-strict-aliasing -fno-tree-vectorize
    -fno-tree-slp-vectorize -Wno-unknown-pragmas -Wno-psabi)
  if(RUNG_SANITIZE)  # as for the rungs of a CPU: compile time
    target_compile_options(${target} PRIVATE -fno-sanitize-address-use-after-scope)
  else()
    target_compile_options(${target} PRIVATE -O2 -g1 -gstatement-frontiers -fsanitize=thread
      --param=tsan-distinguish-volatile=1 --param=tsan-instrument-func-entry-exit=0
      -fsanitize-coverage=trace-pc -fno-optimize-sibling-calls)
  endif()
endfunction()
