# SPDX-License-Identifier: Apache-2.0
# librung.a. Rungs register themselves by constants that nothing refers to, so a program must link the whole
# archive: rung::static and rung-static.pc do. Peers are modules beside librung.so and stay with it.
option(RUNG_STATIC "Build and install librung.a beside librung.so" OFF)
set(rung_static_libraries "")
if(NOT RUNG_STATIC)
  return()
endif()
if(RUNG_CUDA)
  message(FATAL_ERROR "RUNG_STATIC=ON with RUNG_CUDA=ON is not supported; accepted is RUNG_CUDA=OFF")
endif()

add_library(rung_static STATIC ${PROJECT_BINARY_DIR}/generated/kernel_usage.cpp)
foreach(objects IN LISTS object_libraries)
  target_sources(rung_static PRIVATE $<TARGET_OBJECTS:${objects}>)
endforeach()
# The generated source has one writer, also with make.
add_dependencies(rung_static rung)
set_target_properties(rung_static PROPERTIES OUTPUT_NAME rung EXPORT_NAME static_archive)
target_compile_features(rung_static PUBLIC cxx_std_20)
target_include_directories(rung_static PRIVATE ${PROJECT_SOURCE_DIR}
  INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# Plain names, so that consumers need the libraries alone, not their CMake packages.
set(rung_static_libraries fmt ${hwy_LIBRARIES} ${OpenMP_CXX_LIB_NAMES} ${CMAKE_DL_LIBS} stdc++)
if(RUNG_SIMT)
  # A simulated thread's variables are in a shared library (rung/simt/thread/variables.cpp).
  target_link_libraries(rung_static INTERFACE rung_thread)
  list(APPEND rung_static_libraries ${dw_LIBRARIES})
  if(TARGET Boost::context)
    list(APPEND rung_static_libraries boost_context)
  endif()
endif()
list(REMOVE_DUPLICATES rung_static_libraries)
target_link_libraries(rung_static INTERFACE ${rung_static_libraries})

# CMake refuses a program that links both, in which every rung would be registered twice.
foreach(target rung rung_static)
  set_property(TARGET ${target} APPEND PROPERTY COMPATIBLE_INTERFACE_STRING RUNG_LINKAGE)
endforeach()
set_property(TARGET rung PROPERTY INTERFACE_RUNG_LINKAGE shared)
set_property(TARGET rung_static PROPERTY INTERFACE_RUNG_LINKAGE static)

install(TARGETS rung_static EXPORT rung_static_targets ARCHIVE COMPONENT headers)
install(EXPORT rung_static_targets FILE rungStaticTargets.cmake NAMESPACE rung::
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rung COMPONENT headers)

list(TRANSFORM rung_static_libraries PREPEND -l OUTPUT_VARIABLE flags)
if(RUNG_SIMT)
  list(PREPEND flags -lrung_thread)
endif()
list(JOIN flags " " pc_static_libraries)
configure_file(cmake/rung-static.pc.in ${PROJECT_BINARY_DIR}/rung-static.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/rung-static.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT headers)
