// SPDX-License-Identifier: Apache-2.0
// gemm: the problems on which `rung explain` runs each rung.
#include "rung/harness/explain_problems.hpp"

#include "rung/ops/gemm/op/gemm.hpp"

namespace rung {
namespace {

// Problems that fill whole tiles of every rung of the f32 ladder; tensor cores in each operand
// type; then the special case of each specialized rung: split-K, unaligned rows, few rows.
constexpr ExplainProblem explain_list[] = {
    {"f32 256x256x64"},
    {"f32 256x256x64,tf32"},
    {"bf16 256x256x64"},
    {"i8 64x64x64", "naive_bytes"},
    {"f32 128x128x512", "split_k"},
    {"f32 255x257x63", "simt_packed"},
    {"f32 128x128x512", "simt_stream_k"},
    {"f32 256x256x16", "short_k"},
    {"f32 24x24x24,batch=64", "small_products"},
    {"f32 4x512x512", "few_rows"},
    {"bf16 16x512x512,tb", "skinny_stream"},
    {"bf16 8x1031x515,tb", "skinny_unaligned"},
    {"f32 2x2x1623,tb", "dots"},
    {"f32 1x512x512", "gemv"},
    {"f64 128x128x64", "mma_f64"},
    {"bf16 24x24x24,batch=64", "small_tensor_products"},
    {"bf16 255x257x63", "packed"},
    {"bf16 255x257x63", "shifted_tiles"},
    {"f32 256x256x64,split", "split_bf16"},
    {"e4m3 256x256x128,tb", "fp8_wgmma"},
    {"i8 256x256x128,tb", "int8_wgmma"},
};
const ExplainProblems<Gemm> explain_problems{explain_list};

}  // namespace
}  // namespace rung
