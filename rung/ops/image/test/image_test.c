/* SPDX-License-Identifier: Apache-2.0
 * image in C: grey by each weight, alpha, a blur, planar pictures, and wrong calls. */
#include "tests/c_api/check.h"

void check_image(rung_context* context);

void check_image(rung_context* context) {
  /* Red, green, blue, and something in between. */
  uint8_t x[12] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 35}, grey[4];
  uint8_t rgba[8] = {255, 0, 0, 7, 10, 20, 35, 99}, grey_alpha[4];
  const uint8_t tenths[4] = {76, 153, 25, 18}, bt601[4] = {76, 150, 29, 19};
  const uint8_t bt709[4] = {54, 182, 18, 19}, kept[4] = {76, 7, 19, 99};
  const int64_t rgb_shape[3] = {2, 2, 3}, grey_shape[3] = {2, 2, 1};
  const int64_t rgba_shape[3] = {1, 2, 4}, grey_alpha_shape[3] = {1, 2, 2};
  const rung_tensor tx = tensor_of(x, RUNG_U8, 3, rgb_shape);
  const rung_tensor ty = tensor_of(grey, RUNG_U8, 3, grey_shape);
  const rung_tensor trgba = tensor_of(rgba, RUNG_U8, 3, rgba_shape);
  const rung_tensor tkept = tensor_of(grey_alpha, RUNG_U8, 3, grey_alpha_shape);
  CHECK(rung_image(context, &tx, &ty, NULL) == RUNG_OK);
  CHECK(memcmp(grey, bt601, 4) == 0);
  CHECK(rung_image(context, &trgba, &tkept, NULL) == RUNG_OK);
  CHECK(memcmp(grey_alpha, kept, 4) == 0);

  rung_image_options options;
  CHECK(rung_image_options_init(&options, sizeof options) == RUNG_OK);
  CHECK(options.filter == RUNG_IMAGE_GREY && options.weights == RUNG_GREY_BT601);
  CHECK(options.radius == 2 && options.amount == 1 && options.sigma == 0 && !options.planar);
  options.weights = RUNG_GREY_TENTHS;
  CHECK(rung_image(context, &tx, &ty, &options) == RUNG_OK);
  CHECK(memcmp(grey, tenths, 4) == 0);
  uint8_t white[12];
  memset(white, 255, sizeof white);
  const rung_tensor twhite = tensor_of(white, RUNG_U8, 3, rgb_shape);
  options.weights = RUNG_GREY_TENTHS_BY_TERM;
  CHECK(rung_image(context, &twhite, &ty, &options) == RUNG_OK);
  CHECK(grey[0] == 254 && grey[3] == 254);
  options.weights = RUNG_GREY_BT709;
  CHECK(rung_image(context, &tx, &ty, &options) == RUNG_OK);
  CHECK(memcmp(grey, bt709, 4) == 0);

  float row[4] = {0, 9, 0, 3}, blurred[4];
  const float box[4] = {3, 3, 4, 2}, zero_outside[4] = {1, 1, 4.0F / 3, 1.0F / 3};
  const int64_t planar[3] = {1, 1, 4};
  const rung_tensor trow = tensor_of(row, RUNG_F32, 3, planar);
  const rung_tensor tblurred = tensor_of(blurred, RUNG_F32, 3, planar);
  options.filter = RUNG_IMAGE_BOX;
  options.radius = 1;
  options.planar = 1;
  CHECK(rung_image(context, &trow, &tblurred, &options) == RUNG_OK);
  SAME(blurred, box, 4, 1e-5);
  options.edge = RUNG_IMAGE_EDGE_ZERO;
  CHECK(rung_image(context, &trow, &tblurred, &options) == RUNG_OK);
  SAME(blurred, zero_outside, 4, 1e-5);
  options.truncate = 1;
  FAILS(rung_image(context, &trow, &tblurred, &options), RUNG_INVALID_ARGUMENT, "truncate", "u8");
  options.edge = RUNG_IMAGE_EDGE_CLAMP;
  options.truncate = 0;

  /* Every filter by its own name, whatever options.filter is. */
  typedef rung_status by_name(rung_context*, const rung_tensor*, const rung_tensor*,
                              const rung_image_options*);
  by_name* const named[] = {rung_to_grey, rung_box_blur, rung_gaussian_blur, rung_unsharp_mask,
                            rung_sobel};
  float named_row[4];
  const rung_tensor tnamed = tensor_of(named_row, RUNG_F32, 3, planar);
  for (int filter = RUNG_IMAGE_BOX; filter <= RUNG_IMAGE_SOBEL; ++filter) {
    options.filter = (rung_image_filter)filter;
    CHECK(rung_image(context, &trow, &tblurred, &options) == RUNG_OK);
    options.filter = RUNG_IMAGE_GREY;
    CHECK(named[filter](context, &trow, &tnamed, &options) == RUNG_OK);
    SAME(named_row, blurred, 4, 0);
  }
  memset(grey, 0, sizeof grey);
  CHECK(named[RUNG_IMAGE_GREY](context, &tx, &ty, NULL) == RUNG_OK);
  CHECK(memcmp(grey, bt601, 4) == 0);
  options.filter = RUNG_IMAGE_BOX;

  CHECK_OPTIONS(rung_image_options, rung_image(context, &tx, &ty, options));
  options.radius = 16;
  FAILS(rung_image(context, &trow, &tblurred, &options), RUNG_INVALID_ARGUMENT, "radius is 16",
        "0 to 15");
  options.filter = (rung_image_filter)9;
  FAILS(rung_image(context, &trow, &tblurred, &options), RUNG_INVALID_ARGUMENT, "filter", "9");
  FAILS(rung_image(context, &ty, &ty, NULL), RUNG_INVALID_ARGUMENT, "C = 1", "3 or 4");
  FAILS(rung_image(context, &tx, NULL, NULL), RUNG_INVALID_ARGUMENT, "y is", "NULL");
}
