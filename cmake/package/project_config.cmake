# SPDX-License-Identifier: Apache-2.0
# Read by cpack before it makes anything.
if(CPACK_GENERATOR STREQUAL DEB AND CPACK_RUNG_REFUSED)
  message(FATAL_ERROR "cpack: ${CPACK_RUNG_REFUSED}Configure a build for packages as docs/install.md says.")
endif()
# CPack writes a summary that is not its default in front of each package's own.
set(CPACK_DEFAULT_PACKAGE_DESCRIPTION_SUMMARY "${CPACK_PACKAGE_DESCRIPTION_SUMMARY}")
