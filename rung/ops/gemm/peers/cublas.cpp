// SPDX-License-Identifier: Apache-2.0
// gemm / cublas: the peer cuBLASLt, the fastest of the algorithms that its heuristics propose.
//
// The first run of a layout times up to eight proposals on the caller's operands, writing to
// scratch memory, and keeps the fastest; later runs make one call. Timing is impossible during the
// capture of a CUDA graph: a new layout then uses the first proposal.
//
// Precision  f32 in full (CUBLAS_COMPUTE_32F) unless tf32 is requested; f16 and bf16 with f32 sums;
//            e4m3 with promoted f32 sums, as our rungs (no "fast accumulation"); i8 with i32.
// Limits     e4m3 and i8 only if k is contiguous in both operands, i8 only at addresses that are
//            multiples of 4. No bias and no activation: cuBLASLt's GELU is the tanh approximation,
//            ours is exact.
#include <list>
#include <mutex>
#include <string>
#include <vector>

#include "rung/ops/gemm/peers/call.hpp"
#include "rung/ops/gemm/peers/cublas.hpp"

namespace rung {
namespace {

using namespace peer;

constexpr std::size_t workspace_bytes = std::size_t{32} << 20;
constexpr int max_algorithms = 8;
constexpr int timed_runs = 3;

struct Types {
  cudaDataType_t operands, c, scale;
  cublasComputeType_t compute;
};
cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return CUDA_R_64F;
    case DType::f16:
      return CUDA_R_16F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::e4m3:
      return CUDA_R_8F_E4M3;
    case DType::i8:
      return CUDA_R_8I;
    case DType::i32:
      return CUDA_R_32I;
    default:
      return CUDA_R_32F;
  }
}
Types types_of(const Gemm::Args& args) {
  if (args.a.dtype == DType::i8) return {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I};
  const bool is_double = args.a.dtype == DType::f64;
  const cublasComputeType_t single =
      args.precision == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  return {data_type(args.a.dtype), data_type(args.c.dtype), is_double ? CUDA_R_64F : CUDA_R_32F,
          is_double ? CUBLAS_COMPUTE_64F : single};
}

/// Cached state of one layout.
struct CublasLtPlan {
  Gemm::Args args;  // arguments it was made for
  Device device;
  cublasLtHandle_t handle = nullptr;
  Owned<cublasLtMatmulDesc_t> operation;
  Owned<cublasLtMatrixLayout_t> left, right, result;
  std::vector<cublasLtMatmulAlgo_t> algorithms;  // reduced to one after timing

  [[nodiscard]] bool serves(const Gemm::Args& other) const {
    return same_layout(args.a, other.a) && same_layout(args.b, other.b) &&
           same_layout(ConstTensorRef(args.c), ConstTensorRef(other.c)) &&
           args.precision == other.precision;
  }
};

/// Describes a matrix to cuBLAS, which is column-major: its first operand is our B, its second our
/// A, and its result has n rows and m columns (the transposed product).
void describe(Owned<cublasLtMatrixLayout_t>& layout, cudaDataType_t type, const Matrix& matrix,
              std::int64_t rows, std::int64_t columns, const Gemm::Args& args, DType dtype) {
  const auto batch = static_cast<int>(args.batch());
  const std::int64_t distance = matrix.batch_stride / static_cast<std::int64_t>(size_of(dtype));
  layout.destroy = cublas().destroy_layout;
  check(cublas().create_layout(
            &layout.handle, type, static_cast<std::uint64_t>(matrix.transposed ? rows : columns),
            static_cast<std::uint64_t>(matrix.transposed ? columns : rows), matrix.leading),
        "describing a matrix");
  check(
      cublas().set_layout(layout.handle, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch)),
      "setting the batch");
  check(cublas().set_layout(layout.handle, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &distance,
                            sizeof(distance)),
        "setting the distance within the batch");
}

/// Fills plan.algorithms; leaves it empty if the library proposes none.
void propose(CublasLtPlan& plan, const BlasArguments& call) {
  CublasLt& library = cublas();
  Owned<cublasLtMatmulPreference_t> preference;
  preference.destroy = library.destroy_preference;
  check(library.create_preference(&preference.handle), "making a preference");
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(library.set_preference(preference.handle, attribute, &value, sizeof(value)),
          "setting a preference");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  // Partial sums are added in the compute type: in 16 bits the result would be less accurate than
  // C's type.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  // A plan serves all calls of the same alignment, up to 16 bytes, so it requires no larger one.
  const auto alignment = [](const std::byte* data) {
    const auto address = reinterpret_cast<std::uintptr_t>(data) | 16;
    return static_cast<std::uint32_t>(address & (~address + 1));
  };
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(call.b.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(call.a.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(call.c.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(call.c.data));
  cublasLtMatmulHeuristicResult_t found[max_algorithms];
  int count = 0;
  const cublasStatus_t status = library.heuristic(
      plan.handle, plan.operation.handle, plan.left.handle, plan.right.handle, plan.result.handle,
      plan.result.handle, preference.handle, max_algorithms, found, &count);
  if (status != CUBLAS_STATUS_SUCCESS) return;
  for (int i = 0; i < count; ++i) {
    if (found[i].state == CUBLAS_STATUS_SUCCESS) plan.algorithms.push_back(found[i].algo);
  }
}

/// Returns the device's library handle. Handles stay until the process ends: the library owns
/// device memory that must not be freed after the driver has shut down.
cublasLtHandle_t handle_of(int device) {
  static std::vector<cublasLtHandle_t> handles;
  if (handles.size() <= static_cast<std::size_t>(device)) handles.resize(device + 1, nullptr);
  cublasLtHandle_t& handle = handles[static_cast<std::size_t>(device)];
  if (handle == nullptr) check(cublas().create(&handle), "starting");
  return handle;
}

std::mutex plans_mutex;  // guards plans_of's list and handle_of's

/// Returns the plan of a call's layout, made on first use. The caller holds plans_mutex and has
/// made the device current.
CublasLtPlan& plan_of(const Gemm::Args& args, const Context& context) {
  // Leaked, like the handles.
  static auto& plans = *new std::list<CublasLtPlan>;
  for (CublasLtPlan& plan : plans) {
    if (plan.device == context.device() && plan.serves(args)) return plan;
  }
  CublasLt& library = cublas();
  const BlasArguments call = call_of(args);
  const Types types = types_of(args);
  CublasLtPlan& plan = plans.emplace_back();
  try {
    plan.device = context.device();
    plan.handle = handle_of(context.device().index);
    plan.operation.destroy = library.destroy_operation;
    check(library.create_operation(&plan.operation.handle, types.compute, types.scale),
          "describing the operation");
    const auto turn = [](const Matrix& m) { return m.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
    const cublasOperation_t left = turn(call.b);
    const cublasOperation_t right = turn(call.a);
    check(library.set_operation(plan.operation.handle, CUBLASLT_MATMUL_DESC_TRANSA, &left,
                                sizeof(left)),
          "setting the first operand's transposition");
    check(library.set_operation(plan.operation.handle, CUBLASLT_MATMUL_DESC_TRANSB, &right,
                                sizeof(right)),
          "setting the second operand's transposition");
    describe(plan.left, types.operands, call.b, call.k, call.n, args, args.b.dtype);
    describe(plan.right, types.operands, call.a, call.m, call.k, args, args.a.dtype);
    describe(plan.result, types.c, call.c, call.m, call.n, args, args.c.dtype);
    propose(plan, call);
    plan.args = args;
  } catch (...) {
    plans.pop_back();
    throw;
  }
  return plan;
}

void multiply(const CublasLtPlan& plan, const cublasLtMatmulAlgo_t& algorithm,
              const Gemm::Args& args, Context& context, void* result) {
  const BlasArguments call = call_of(args);
  const float single[] = {static_cast<float>(args.alpha), static_cast<float>(args.beta)};
  const double both[] = {args.alpha, args.beta};
  const std::int32_t whole[] = {static_cast<std::int32_t>(args.alpha),
                                static_cast<std::int32_t>(args.beta)};
  const void* alpha = &single[0];
  const void* beta = &single[1];
  if (args.a.dtype == DType::f64) alpha = &both[0], beta = &both[1];
  if (args.a.dtype == DType::i8) alpha = &whole[0], beta = &whole[1];
  check(
      cublas().multiply(plan.handle, plan.operation.handle, alpha, call.b.data, plan.left.handle,
                        call.a.data, plan.right.handle, beta, call.c.data, plan.result.handle,
                        result, plan.result.handle, &algorithm, context.workspace(workspace_bytes),
                        workspace_bytes, static_cast<cudaStream_t>(context.stream())),
      "multiplying");
}

/// Keeps only the fastest of the plan's algorithms, unless timing is impossible now.
void keep_fastest(CublasLtPlan& plan, const Gemm::Args& args, Context& context) {
  auto* stream = static_cast<cudaStream_t>(context.stream());
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &capturing) != cudaSuccess ||
      capturing != cudaStreamCaptureStatusNone) {
    return;
  }
  // Timed runs do not write C: with beta, every run would change the input of the next.
  const ByteRange range = byte_range(args.c);
  const BlasArguments call = call_of(args);
  void* scratch = nullptr;
  if (cudaMalloc(&scratch, range.end - range.begin + 16) != cudaSuccess) {
    cudaGetLastError();
    return;
  }
  // The copy has C's offset from the start of its memory range, and therefore its alignment.
  const auto begin = reinterpret_cast<std::uintptr_t>(call.c.data) - range.begin;
  void* result = static_cast<std::byte*>(scratch) + begin + range.begin % 16;
  cudaEvent_t before = nullptr;
  cudaEvent_t after = nullptr;
  check(cudaEventCreate(&before), "creating an event");
  check(cudaEventCreate(&after), "creating an event");
  float least = 0;
  cublasLtMatmulAlgo_t fastest = plan.algorithms.front();
  for (const cublasLtMatmulAlgo_t& algorithm : plan.algorithms) {
    for (int i = 0; i <= timed_runs; ++i) {  // the first one warms up
      cudaEventRecord(before, stream);
      multiply(plan, algorithm, args, context, result);
      cudaEventRecord(after, stream);
      check(cudaEventSynchronize(after), "timing cuBLASLt");
      float milliseconds = 0;
      cudaEventElapsedTime(&milliseconds, before, after);
      if (i > 0 && (least == 0 || milliseconds < least)) {
        least = milliseconds;
        fastest = algorithm;
      }
    }
  }
  cudaEventDestroy(before);
  cudaEventDestroy(after);
  cudaFree(scratch);
  plan.algorithms.assign(1, fastest);
}

Support present() { return cublas().library.present(); }

std::string about() {
  const std::size_t version = cublas().version();  // 130100 is 13.1.0
  return "cuBLASLt " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) +
         "." + std::to_string(version % 100) + ", fastest of its heuristics";
}

/// Returns whether operands have the 4-byte alignment that cuBLASLt documents for integer products.
/// Its heuristics also propose algorithms for unaligned operands, which then fail to run.
bool aligned_for_integers(const Gemm::Args& args) {
  constexpr std::uintptr_t alignment = 4;
  const BlasArguments call = call_of(args);
  for (const Matrix* operand : {&call.a, &call.b}) {
    if (reinterpret_cast<std::uintptr_t>(operand->data) % alignment != 0) return false;
    const auto distance = static_cast<std::uintptr_t>(operand->batch_stride);
    if (args.batch() > 1 && distance % alignment != 0) return false;
  }
  return true;
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (args.has_scales() || args.a.dtype != args.b.dtype || args.a.dtype == DType::e5m2) {
    return unsupported("of 8-bit floats this peer multiplies e4m3 by e4m3 without scales");
  }
  if (const Support support = supports_call(args, int32_limit); !support) {
    return support;
  }
  if (args.batch() > int32_limit) return unsupported("the batch exceeds 32 bits");
  if (args.batch() == 0 || args.m() == 0 || args.n() == 0) return supported;
  if (args.a.dtype == DType::i8 && !aligned_for_integers(args)) {
    return unsupported("cuBLASLt multiplies i8 at addresses that are multiples of 4");
  }
  const ScopedDevice current(context.device().index);
  const std::scoped_lock lock(plans_mutex);
  return plan_of(args, context).algorithms.empty()
             ? unsupported("cuBLASLt has no algorithm for this layout")
             : supported;
}

void run(const Gemm::Args& args, Context& context) {
  if (args.batch() == 0 || args.m() == 0 || args.n() == 0) return;
  const ScopedDevice current(context.device().index);
  const std::scoped_lock lock(plans_mutex);
  CublasLtPlan& plan = plan_of(args, context);
  if (plan.algorithms.size() > 1) keep_fastest(plan, args, context);
  multiply(plan, plan.algorithms.front(), args, context, call_of(args).c.data);
}

const Rung<Gemm> self{{.name = "cublas",
                       .step = 0,
                       .backend = Backend::cuda,
                       .peer = true,
                       .about = about,
                       .present = present,
                       .supports = supports,
                       .run = run}};

}  // namespace
}  // namespace rung
