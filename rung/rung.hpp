// SPDX-License-Identifier: Apache-2.0
// Everything public of rung, for C++ programs:
//
//   #include <rung/rung.hpp>
//   rung::Context context = rung::Context::cpu();
//   rung::Tensor c(rung::DType::f32, {m, n});
//   rung::gemm(context, a, b, c);
//
// C programs include <rung/rung.h>. Each operator also has a header of its own.
#pragma once

#include "rung/core/language.hpp"  // before all others

#include "rung/core/context.hpp"
#include "rung/core/dlpack.hpp"
#include "rung/core/dtype.hpp"
#include "rung/core/error.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor.hpp"
#include "rung/core/version.hpp"
#include "rung/core/view.hpp"
#include "rung/ops/all.hpp"  // every operator's header; written by the build
