// SPDX-License-Identifier: Apache-2.0
// Layers on which conv and its gradients are surveyed: 3 x 3 and 1 x 1 of all sizes, first layers,
// strides, groups, depthwise, one dimension; then layers of vision networks, by whole blocks, first
// layers and one filter per channel.
#pragma once

#include <string_view>

namespace rung::conv_survey {

inline constexpr std::string_view layers[] = {
    "(f32*4|bf16|f16) 1..32x1..256x4..64x4..64,out=1..256,k=3,p=1(*2|,s=2)(*2|,nhwc)",
    "(f32*3|bf16|f16) 1..32x1..512x4..64x4..64,out=1..512,k=1(*2|,nhwc)",
    "(f32*3|f64) 1..64x1..4x8..128x8..128,out=1..64,(k=3|k=5|k=7,p=3|k=7,s=2,p=3)(*2|,nhwc)",
    "(f32*2|bf16) 1..16x64x4..64x4..64,k=3,p=1,(g=64*2|g=2|g=8)(|,nhwc)",
    "(f32*2|f64) 1..16x1..64x4..64x4..64,out=1..64,(k=3,d=2,p=2|k=2x5,s=2x1|k=7|k=1,s=2)(|,nhwc)",
    "(f32*2|bf16) 1..16x1..64x16..4096,out=1..64,k=3..9(*2|,nhwc)",
    // Vision networks.
    ("(bf16*3|f16|f32) 1..64x(16|64*2|96|128*2|256*2|320|512)x(7|14|28|56)x(7|14|28|56),"
     "out=(16|64*2|96|128*2|256*2|320|512),(k=3,p=1*3|k=1*2|k=3,s=2,p=1)(|,nhwc*2)"),
    ("(bf16*2|f16|f32*2) 1..32x(1|3*3|4)x(32|128|224*2|256|512)x(32|128|224*2|256|512),"
     "out=(16|32*2|64*2|96),(k=3,s=2,p=1*2|k=7,s=2,p=3*2|k=3,p=1|k=4,s=4)(*2|,nhwc)"),
    ("(bf16*2|f16|f32*2) 1..64x96x(7|14|28|56|112)x(7|14|28|56|112),"
     "(k=3,p=1|k=3,s=2,p=1|k=5,p=2|k=7,p=3*2),g=96(|,nhwc)"),
    ("(bf16*2|f16|f32*2) 1..64x256x(7|14|28|56)x(7|14|28|56),"
     "(k=3,p=1|k=3,s=2,p=1|k=5,p=2|k=7,p=3*2),g=256(|,nhwc)"),
};

}  // namespace rung::conv_survey
