# SPDX-License-Identifier: Apache-2.0
# librung.so and the program. OBJECT libraries throughout: a static archive would silently drop the
# files whose only content is a self-registering constant.

# What the operators asked for call of others is built too: those that the file `uses` in their folders names.
if(RUNG_OPERATORS)
  set(operators_to_follow ${RUNG_OPERATORS})
  while(operators_to_follow)
    list(POP_FRONT operators_to_follow operator)
    set(uses ${PROJECT_SOURCE_DIR}/rung/ops/${operator}/uses)
    if(NOT EXISTS ${uses})
      continue()
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${uses})
    file(STRINGS ${uses} used REGEX "^[a-z]")
    list(REMOVE_ITEM used ${RUNG_OPERATORS})
    list(APPEND operators_to_follow ${used})
    list(APPEND RUNG_OPERATORS ${used})
  endwhile()
endif()

# The sources of operators that match a pattern within their folders; of all, or of those asked for.
function(rung_operator_sources result)
  set(patterns ${ARGN})
  list(TRANSFORM patterns PREPEND ${PROJECT_SOURCE_DIR}/rung/ops/*/)
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  if(RUNG_OPERATORS)
    list(JOIN RUNG_OPERATORS "|" names)
    list(FILTER sources INCLUDE REGEX "/rung/ops/(${names})/")
  endif()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

function(rung_objects name)
  add_library(${name} OBJECT ${ARGN})
  target_link_libraries(${name} PRIVATE rung_options)
  set_property(GLOBAL APPEND PROPERTY rung_object_libraries ${name})
endfunction()

# rung/ops/all.hpp and all.h include every operator's headers, so that rung.hpp and rung.h list none.
file(GLOB operator_folders CONFIGURE_DEPENDS LIST_DIRECTORIES true ${PROJECT_SOURCE_DIR}/rung/ops/*)
set(all_headers "// SPDX-License-Identifier: Apache-2.0\n")
string(APPEND all_headers "// Every operator's header; written by the build.\n#pragma once\n\n")
set(all_c_headers "/* SPDX-License-Identifier: Apache-2.0\n * What operators offer to C; written by the build. */\n")
foreach(folder IN LISTS operator_folders)
  get_filename_component(operator ${folder} NAME)
  if(NOT EXISTS ${folder}/${operator}.hpp)
    continue()
  endif()
  file(READ ${folder}/op/${operator}.hpp header)
  string(REGEX MATCH "string_view summary =[ \n]*(\"[^\"]*\")" summary "${header}")
  string(APPEND all_operators "    {\"${operator}\", ${CMAKE_MATCH_1}},\n")
  if(RUNG_OPERATORS AND NOT operator IN_LIST RUNG_OPERATORS)
    continue()
  endif()
  list(APPEND rung_operators_found ${operator})
  string(APPEND all_headers "#include \"rung/ops/${operator}/${operator}.hpp\"\n")
  if(EXISTS ${folder}/${operator}.h)
    string(APPEND all_c_headers "#include \"rung/ops/${operator}/${operator}.h\"\n")
  endif()
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/rung/ops/all.hpp CONTENT "${all_headers}")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/rung/ops/all.h CONTENT "${all_c_headers}")
# Whatever is built, so that no other source depends on RUNG_OPERATORS: the workbench names what is left out.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/all_operators.inc CONTENT "${all_operators}" @ONLY)

# The rates by which kernels are chosen, of each machine that was measured.
file(GLOB rates CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/results/*/rates/*.json)
add_executable(rung_rates_table tools/rates_table.cpp)
target_link_libraries(rung_rates_table PRIVATE rung_options)
set(rates_table ${PROJECT_BINARY_DIR}/generated/rates_table.cpp)
add_custom_command(OUTPUT ${rates_table} COMMAND rung_rates_table ${rates_table} ${rates}
  DEPENDS rung_rates_table ${rates} VERBATIM)

file(GLOB core_sources CONFIGURE_DEPENDS rung/core/*.cpp rung/harness/*.cpp rung/c/*.cpp)
rung_objects(rung_core ${core_sources})
target_link_libraries(rung_core PRIVATE fmt::fmt Threads::Threads)
rung_compile_together(rung_core)
target_sources(rung_core PRIVATE ${rates_table})

# What stands behind an operator's contract, its peers on the CPU, and what peers of several operators share.
rung_operator_sources(operator_sources op/*.cpp shared/*.cpp peers/*.cpp)
list(FILTER operator_sources EXCLUDE REGEX "/peers/c[ul][^/]*$")
file(GLOB peer_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/rung/peers/*.cpp)
rung_objects(rung_operators ${operator_sources} ${peer_sources})
target_link_libraries(rung_operators PRIVATE fmt::fmt OpenMP::OpenMP_CXX ${CMAKE_DL_LIBS})

# CPU rungs. Highway compiles a file once for each instruction set by including it again.
file(GLOB cpu_sources CONFIGURE_DEPENDS rung/cpu/*.cpp)
rung_operator_sources(cpu_rungs cpu/*.cpp cpu/shapes/*.cpp cpu/types/*.cpp cpu/detail/*.cpp shared/cpu/*.cpp)
rung_split(cpu_rungs)
rung_objects(rung_cpu ${cpu_sources} ${cpu_rungs})
target_link_libraries(rung_cpu PRIVATE PkgConfig::hwy OpenMP::OpenMP_CXX)
if(RUNG_CPU_NATIVE AND rung_native_target)
  target_compile_definitions(rung_cpu PRIVATE HWY_BASELINE_TARGETS=${rung_native_target})
endif()
if(RUNG_SANITIZE)
  # Watching the scopes of thousands of vector temporaries took two thirds of these files' compile time.
  target_compile_options(rung_cpu PRIVATE -fno-sanitize-address-use-after-scope)
  # The slowest rungs take longer to run than to optimize.
  list(FILTER cpu_rungs INCLUDE REGEX "/cpu/0([1-5]0|28)_[^/]*$")
  set_source_files_properties(${cpu_rungs} PROPERTIES COMPILE_OPTIONS -O2)
endif()

# Parts that need a scope of their own (a peer compiled as a module, say).
rung_operator_sources(scopes peers/*/CMakeLists.txt)
foreach(scope IN LISTS scopes)
  get_filename_component(folder ${scope} DIRECTORY)
  add_subdirectory(${folder})
endforeach()

if(RUNG_SIMT)
  add_subdirectory(rung/simt)
endif()

if(RUNG_CUDA)
  file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/rung/device/*.cu)
  rung_operator_sources(operator_cuda_sources cuda/*.cu cuda/shapes/*.cu cuda/types/*.cu cuda/detail/*.cu
                        peers/cu*.cu peers/cu*.cpp)
  rung_split(operator_cuda_sources)
  list(APPEND cuda_sources ${operator_cuda_sources})
  rung_objects(rung_cuda ${cuda_sources})
  target_link_libraries(rung_cuda PRIVATE CUDA::cudart_static)
  rung_compile_for_gpus(${cuda_sources})
  # What ptxas says of the kernels goes into the library, for `rung explain`.
  target_compile_options(rung_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-v>)
  # Appended: an empty launcher must not become an empty word of the command, which CMake 4 passes on.
  set(launcher ${PROJECT_SOURCE_DIR}/cmake/keep_usage.sh ${CMAKE_CUDA_COMPILER_LAUNCHER})
  set_target_properties(rung_cuda PROPERTIES CUDA_COMPILER_LAUNCHER "${launcher}")
  set(cuda_objects $<TARGET_OBJECTS:rung_cuda>)
endif()

# OpenCL rungs are compiled when they first run, by the device's driver: their sources are embedded.
if(rung_has_opencl)
  file(GLOB opencl_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/rung/opencl/*.cpp)
  list(FILTER opencl_sources EXCLUDE REGEX "/absent[.]cpp$")
  rung_operator_sources(opencl_rungs opencl/*.cpp peers/cl*.cpp)
  rung_operator_sources(opencl_kernels opencl/*.cl)
  file(GLOB own_kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/rung/opencl/*.cl)
  rung_embed_kernels(${opencl_kernels} ${own_kernels})
  rung_objects(rung_opencl ${opencl_sources} ${opencl_rungs})
else()
  rung_objects(rung_opencl rung/opencl/absent.cpp)
endif()

set(kernel_usage ${PROJECT_SOURCE_DIR}/cmake/kernel_usage)
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/generated/kernel_usage.cpp
  COMMAND ${CMAKE_COMMAND} -D "OBJECTS=${cuda_objects}" -D TEMPLATE=${kernel_usage}.cpp.in
          -D RESULT=${PROJECT_BINARY_DIR}/generated/kernel_usage.cpp -P ${kernel_usage}.cmake
  DEPENDS ${kernel_usage}.cmake ${kernel_usage}.cpp.in ${cuda_objects}
  VERBATIM)

get_property(object_libraries GLOBAL PROPERTY rung_object_libraries)
add_library(rung SHARED ${PROJECT_BINARY_DIR}/generated/kernel_usage.cpp)
add_library(rung::rung ALIAS rung)
foreach(objects IN LISTS object_libraries)
  target_sources(rung PRIVATE $<TARGET_OBJECTS:${objects}>)
endforeach()
set_target_properties(rung PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  INSTALL_RPATH "$ORIGIN")
target_compile_features(rung PUBLIC cxx_std_20)
target_include_directories(rung PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                       $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>
                                       $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
if(RUNG_SIMT)
  # Kernels of programs on the simulated GPU read their thread's variables themselves.
  target_link_libraries(rung PUBLIC rung_thread)
endif()
target_link_libraries(rung PRIVATE fmt::fmt PkgConfig::hwy OpenMP::OpenMP_CXX Threads::Threads
                                   ${CMAKE_DL_LIBS} $<TARGET_NAME_IF_EXISTS:Boost::context>
                                   $<$<BOOL:${RUNG_SIMT}>:PkgConfig::dw>
                                   $<$<BOOL:${RUNG_CUDA}>:CUDA::cudart_static>)
# nodelete: its threads outlive a dlclose().
target_link_options(rung PRIVATE -Wl,--no-undefined -Wl,-z,nodelete)

# What `rung emulate` needs: the runtime of the programs it runs, and the source tree's headers where an
# installed program would look for them, beside bin/.
if(RUNG_SIMT)
  add_subdirectory(rung/emulate/runtime)
  add_subdirectory(rung/emulate/cublas)
  add_library(rung_hooks STATIC rung/simt/record/hooks.cpp)
  target_link_libraries(rung_hooks PRIVATE rung_options)
  install(TARGETS rung_hooks ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT headers)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/rung ${PROJECT_BINARY_DIR}/include/rung SYMBOLIC)
endif()

# The workbench, as objects too, so that tests can run its commands on operators of their own. Sources that differ
# with the simulated GPU have objects of their own for either case: switching RUNG_SIMT compiles none twice.
file(GLOB workbench_sources CONFIGURE_DEPENDS rung/workbench/*.cpp rung/bench/*.cpp)
list(FILTER workbench_sources EXCLUDE REGEX "/main[.]cpp$")
if(RUNG_SIMT)
  set(with_or_without rung_workbench_with_simulator)
  file(GLOB simulator_sources CONFIGURE_DEPENDS rung/emulate/*.cpp rung/workbench/emulate*.cpp)
  list(FILTER simulator_sources EXCLUDE REGEX "/emulate_absent[.]cpp$")
else()
  set(with_or_without rung_workbench_without_simulator)
  file(GLOB simulator_sources CONFIGURE_DEPENDS rung/workbench/emulate_absent.cpp)
endif()
list(FILTER workbench_sources EXCLUDE REGEX "/emulate[^/]*[.]cpp$")
foreach(source IN LISTS workbench_sources)
  file(STRINGS ${source} found REGEX "rung/workbench/recording[.]hpp" LIMIT_COUNT 1)
  if(found)
    list(APPEND simulator_sources ${source})
  endif()
endforeach()
list(REMOVE_ITEM workbench_sources ${simulator_sources})
add_library(rung_workbench OBJECT ${workbench_sources})
# It prints: compiled with less effort, in two thirds of the time. But for the loops that are measured, and the one over
# every element of a result.
set(workbench_loops ${workbench_sources})
list(FILTER workbench_loops INCLUDE REGEX "/(bench/cpu_[^/]*|workbench/compare)[.]cpp$")
set_source_files_properties(${workbench_loops} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>)
target_compile_options(rung_workbench PRIVATE $<$<CONFIG:Release>:-O1>)
rung_compile_together(rung_workbench)
target_link_libraries(rung_workbench
  PRIVATE rung_options
  PUBLIC rung fmt::fmt CLI11::CLI11 nlohmann_json::nlohmann_json PkgConfig::hwy
         OpenMP::OpenMP_CXX PNG::PNG)
add_library(${with_or_without} OBJECT ${simulator_sources})
rung_compile_together(${with_or_without})
target_compile_definitions(${with_or_without} PRIVATE $<$<BOOL:${RUNG_SIMT}>:RUNG_WITH_SIMULATOR=1>)
target_link_libraries(${with_or_without} PRIVATE rung_options rung fmt::fmt nlohmann_json::nlohmann_json PkgConfig::hwy
  OpenMP::OpenMP_CXX)
target_sources(rung_workbench INTERFACE $<TARGET_OBJECTS:${with_or_without}>)
if(RUNG_CUDA)
  # On their own, so that CUDA's headers are on no other source's path: its objects are then the same without.
  file(GLOB bench_cuda_sources CONFIGURE_DEPENDS rung/bench/*.cu)
  add_library(rung_bench_cuda OBJECT ${bench_cuda_sources})
  rung_compile_for_gpus(${bench_cuda_sources})
  target_link_libraries(rung_bench_cuda PRIVATE rung_options CUDA::cudart_static)
  target_sources(rung_workbench INTERFACE $<TARGET_OBJECTS:rung_bench_cuda>)
  target_link_libraries(rung_workbench INTERFACE $<LINK_ONLY:CUDA::cudart_static>)
endif()
add_executable(rung_program rung/workbench/main.cpp)
set_target_properties(rung_program PROPERTIES OUTPUT_NAME rung INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
target_link_libraries(rung_program PRIVATE rung_options rung_workbench)
if(RUNG_SIMT)
  add_dependencies(rung_program rung_emulate rung_hooks rung_cublas)
  configure_file(rung/emulate/cmake/rung-nvcc ${PROJECT_BINARY_DIR}/bin/rung-nvcc COPYONLY)
  install(PROGRAMS rung/emulate/cmake/rung-nvcc DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
endif()
