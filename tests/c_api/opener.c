/* SPDX-License-Identifier: Apache-2.0
 * Opens librung.so while it runs, as Python and plug-ins do: opener LIBRARY. The simulated GPU's
 * variables are thread-local and want a place that threads have from their start, of which little
 * is left by then. Where there is a simulated GPU, a product is computed on it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "rung/rung.h"

static void* open_library(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return library;
}

/* ISO C has no conversion of an object's address to a function's; POSIX promises this one. */
#define FIND(library, name) *(void**)&name = dlsym(library, "rung_" #name)

int main(int count, char** arguments) {
  rung_status (*backend_available)(rung_backend);
  rung_status (*context_create)(rung_backend, int, void*, rung_context**);
  void (*context_destroy)(rung_context*);
  const char* (*last_error)(void);
  rung_status (*gemm)(rung_context*, const rung_tensor*, const rung_tensor*, const rung_tensor*,
                      const rung_gemm_options*);
  if (count != 2) return 2;
  void* const library = open_library(arguments[1]);
  FIND(library, backend_available);
  FIND(library, context_create);
  FIND(library, context_destroy);
  FIND(library, last_error);
  FIND(library, gemm);

  const rung_backend backend = backend_available(RUNG_SIMT) == RUNG_OK ? RUNG_SIMT : RUNG_CPU;
  const int64_t shape[2] = {2, 2};
  float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, c[4] = {0, 0, 0, 0};
  const rung_tensor left = {a, RUNG_F32, 2, shape, NULL, {backend, 0}};
  const rung_tensor right = {b, RUNG_F32, 2, shape, NULL, {backend, 0}};
  const rung_tensor product = {c, RUNG_F32, 2, shape, NULL, {backend, 0}};
  rung_context* context = NULL;
  if (context_create(backend, 0, NULL, &context) != RUNG_OK ||
      gemm(context, &left, &right, &product, NULL) != RUNG_OK) {
    fprintf(stderr, "%s\n", last_error());
    return 1;
  }
  context_destroy(context);
  return c[0] == 19 && c[1] == 22 && c[2] == 43 && c[3] == 50 ? 0 : 1;
}
