/* SPDX-License-Identifier: Apache-2.0
 * Spreads the grey levels of an image: histogram, running sum, table. Prints the range of levels
 * before and after. In C; `rung_last_error()` says what went wrong. */
#include <rung/rung.h>

#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 640, HEIGHT = 480, LEVELS = 256 };

static void check(rung_status status) {
  if (status == RUNG_OK) return;
  fprintf(stderr, "%s: %s\n", rung_status_name(status), rung_last_error());
  exit(1);
}

static void print_range(const char* what, const unsigned char* pixels) {
  int low = LEVELS, high = 0;
  for (int i = 0; i < WIDTH * HEIGHT; ++i) {
    if (pixels[i] < low) low = pixels[i];
    if (pixels[i] > high) high = pixels[i];
  }
  printf("%s: grey levels %d to %d\n", what, low, high);
}

int main(void) {
  static unsigned char pixels[WIDTH * HEIGHT];
  static int32_t counts[LEVELS], below[LEVELS];
  for (int i = 0; i < WIDTH * HEIGHT; ++i) {
    pixels[i] = (unsigned char)(100 + (i % WIDTH + i / WIDTH) % 50); /* dull: 50 levels of 256 */
  }
  print_range("before", pixels);

  /* rung_tensor describes memory of the program: pointer, type, shape, strides (NULL: contiguous),
   * device. */
  const int64_t image_shape[2] = {HEIGHT, WIDTH}, levels_shape[1] = {LEVELS};
  const rung_tensor image = {pixels, RUNG_U8, 2, image_shape, NULL, {RUNG_CPU, 0}};
  const rung_tensor histogram = {counts, RUNG_I32, 1, levels_shape, NULL, {RUNG_CPU, 0}};
  const rung_tensor sums = {below, RUNG_I32, 1, levels_shape, NULL, {RUNG_CPU, 0}};

  rung_context* context;
  rung_scan_options options;
  check(rung_context_create(RUNG_CPU, 0, NULL, &context));
  check(rung_histogram(context, &image, &histogram, NULL)); /* level l is bin l */
  check(rung_scan_options_init(&options, sizeof options));
  options.exclusive = 1; /* below[l]: the pixels darker than l */
  check(rung_scan(context, &histogram, &sums, &options));
  rung_context_destroy(context);

  int brightest = LEVELS - 1;
  while (counts[brightest] == 0) --brightest;
  for (int i = 0; i < WIDTH * HEIGHT; ++i) {
    pixels[i] = (unsigned char)((LEVELS - 1) * (long)below[pixels[i]] / below[brightest]);
  }
  print_range("after", pixels);
  return 0;
}
