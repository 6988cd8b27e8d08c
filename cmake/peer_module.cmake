# SPDX-License-Identifier: Apache-2.0
# Peers that are headers or need a library of their own are compiled into modules: shared objects beside
# librung that it loads when asked (rung/peers/module.hpp), so that it starts where they are missing.
#
#   rung_peer_module(NAME [BY_ISA] SOURCES file... LIBRARIES target... [OPTIONS flag...])
#
# makes librung_peer_NAME.so; BY_ISA: librung_peer_NAME_avx512.so and _avx2.so, or _baseline.so where there
# are no such instruction sets. RUNG_PEERS_NATIVE: of those two, the one that this machine loads.
function(rung_peer_module name)
  if(NOT RUNG_PEERS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 module "BY_ISA" "" "SOURCES;LIBRARIES;OPTIONS")
  if(NOT module_BY_ISA)
    rung_peer_module_variant(rung_peer_${name} "")
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    # Their widest vectors: like is compared with like.
    if(NOT RUNG_PEERS_NATIVE OR rung_native_target STREQUAL HWY_AVX3)
      rung_peer_module_variant(rung_peer_${name}_avx512 "-march=x86-64-v4;-mprefer-vector-width=512")
    endif()
    if(NOT RUNG_PEERS_NATIVE OR NOT rung_native_target STREQUAL HWY_AVX3)
      rung_peer_module_variant(rung_peer_${name}_avx2 "-march=x86-64-v3")
    endif()
  else()
    rung_peer_module_variant(rung_peer_${name}_baseline "")
  endif()
endfunction()

# Reads the caller's module_ variables.
function(rung_peer_module_variant target isa)
  add_library(${target} MODULE ${module_SOURCES})
  target_link_libraries(${target} PRIVATE rung_options ${module_LIBRARIES})
  # -O3 whatever the build type: a slow peer would flatter us.
  target_compile_options(${target} PRIVATE -O3 -g0 -fno-sanitize=all -Wno-maybe-uninitialized -Wno-uninitialized
    ${isa} ${module_OPTIONS})
  target_compile_definitions(${target} PRIVATE NDEBUG)
  target_link_options(${target} PRIVATE -Wl,-Bsymbolic -fno-sanitize=all)
  # Whoever builds librung gets its modules; rung itself is defined after the operators' folders.
  cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY [[${PROJECT_SOURCE_DIR}]]
    CALL add_dependencies rung ${target})")
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/rung COMPONENT program)
endfunction()
