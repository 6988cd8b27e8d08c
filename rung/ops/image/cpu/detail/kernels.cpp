// SPDX-License-Identifier: Apache-2.0
// image's vector code, compiled once for each instruction set: see kernels.hpp.
#include "rung/ops/image/cpu/detail/kernels.hpp"

#include "rung/cpu/foreach_target.hpp"

#include "rung/ops/image/cpu/detail/grey-inl.hpp"
#include "rung/ops/image/cpu/detail/neighbors-inl.hpp"

#if HWY_ONCE
namespace rung::image_cpu {
HWY_EXPORT(grey_u8);
HWY_EXPORT(grey_f32);
HWY_EXPORT(weigh_along_u8);
HWY_EXPORT(weigh_down_u8);
HWY_EXPORT(slide_u8);
HWY_EXPORT(mean_along_u8);
HWY_EXPORT(weigh_f32);
HWY_EXPORT(sharpen_u8);
HWY_EXPORT(sharpen_f32);
HWY_EXPORT(sobel_u8);
HWY_EXPORT(sobel_f32);

void grey_pixels(const GreyPixels<std::uint8_t>& pixels, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(grey_u8)(pixels, count);
}
void grey_pixels(const GreyPixels<float>& pixels, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(grey_f32)(pixels, count);
}
void weigh_along(const std::uint8_t* line, int group, const Image::Args& args, std::int16_t* sums,
                 std::int64_t count, const std::uint8_t* next) {
  HWY_DYNAMIC_DISPATCH(weigh_along_u8)(line, group, args, sums, count, next);
}
void weigh_down(const std::int16_t* const* lines, const Image::Args& args, std::uint8_t* out,
                std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(weigh_down_u8)(lines, args, out, count);
}
void slide(std::uint16_t* sums, const std::uint8_t* entering, const std::uint8_t* leaving,
           std::int64_t count, const std::uint8_t* next) {
  HWY_DYNAMIC_DISPATCH(slide_u8)(sums, entering, leaving, count, next);
}
void mean_along(const std::uint16_t* sums, int group, int radius, bool truncate,
                std::uint16_t* scratch, std::uint8_t* out, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(mean_along_u8)(sums, group, radius, truncate, scratch, out, count);
}
void weigh(const float* const* lines, const float* weights, int count, float scale, float* out,
           std::int64_t length) {
  HWY_DYNAMIC_DISPATCH(weigh_f32)(lines, weights, count, scale, out, length);
}
void sharpen(const std::uint8_t* x, const std::uint8_t* blurred, const Image::Args& args,
             std::uint8_t* out, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(sharpen_u8)(x, blurred, args.amount_256, out, count);
}
void sharpen(const float* x, const float* blurred, const Image::Args& args, float* out,
             std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(sharpen_f32)
  (x, blurred, static_cast<float>(args.options.amount), out, count);
}
void sobel(const std::uint8_t* const (&lines)[3], int group, std::uint8_t* out, std::int64_t count,
           const std::uint8_t* next) {
  HWY_DYNAMIC_DISPATCH(sobel_u8)(lines, group, out, count, next);
}
void sobel(const float* const (&lines)[3], int group, float* out, std::int64_t count,
           const float* next) {
  HWY_DYNAMIC_DISPATCH(sobel_f32)(lines, group, out, count, next);
}
}  // namespace rung::image_cpu
#endif
