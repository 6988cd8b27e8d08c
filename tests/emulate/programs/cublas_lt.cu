// SPDX-License-Identifier: Apache-2.0
// cublasLtMatmul with its epilogues against loops on the host: a layer of a network, forward and
// backward, matrices by rows, batches.
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <vector>

#include "check.cuh"

#define BLAS(call) CHECK((call) == CUBLAS_STATUS_SUCCESS)

template <class T>
void fill(Array<T>& array, int salt) {
  for (int i = 0; i < array.size; ++i) array[i] = static_cast<float>((i * 7 + salt) % 11 - 5) / 8;
  array.up();
}
bool near(double a, double b, double tolerance) {
  return std::fabs(a - b) <= tolerance * (1 + std::fabs(b));
}
double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
}

/// One product of column-major matrices, with what the program sets.
struct Matmul {
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t a, b, d;
  explicit Matmul(cublasLtHandle_t with, cudaDataType type, int m, int n, int k, bool ta, bool tb)
      : handle(with) {
    BLAS(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const cublasOperation_t transpose = CUBLAS_OP_T, none = CUBLAS_OP_N;
    set(CUBLASLT_MATMUL_DESC_TRANSA, ta ? transpose : none);
    set(CUBLASLT_MATMUL_DESC_TRANSB, tb ? transpose : none);
    BLAS(cublasLtMatrixLayoutCreate(&a, type, ta ? k : m, ta ? m : k, ta ? k : m));
    BLAS(cublasLtMatrixLayoutCreate(&b, type, tb ? n : k, tb ? k : n, tb ? n : k));
    BLAS(cublasLtMatrixLayoutCreate(&d, type, m, n, m));
  }
  ~Matmul() {
    cublasLtMatmulDescDestroy(operation);
    cublasLtMatrixLayoutDestroy(a);
    cublasLtMatrixLayoutDestroy(b);
    cublasLtMatrixLayoutDestroy(d);
  }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    BLAS(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof(value)));
  }
  template <class T>
  void epilogue(cublasLtEpilogue_t kind, T* bias, T* aux, int64_t ld) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, kind);
    if (bias != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    if (aux != nullptr) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
    if (aux != nullptr) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, ld);
  }
  void run(const void* left, const void* right, void* to, float beta = 0) {
    cublasLtMatmulPreference_t preference;
    BLAS(cublasLtMatmulPreferenceCreate(&preference));
    const size_t workspace = 1 << 20;
    BLAS(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                              &workspace, sizeof(workspace)));
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    BLAS(cublasLtMatmulAlgoGetHeuristic(handle, operation, a, b, d, d, preference, 1, &found,
                                        &count));
    CHECK(count == 1);
    const float alpha = 1;
    BLAS(cublasLtMatmul(handle, operation, &alpha, left, a, right, b, &beta, to, d, to, d,
                        &found.algo, nullptr, 0, 0));
    BLAS(cublasLtMatmulPreferenceDestroy(preference));
  }
};

/// out = gelu(w' x + bias), of which the argument of gelu is kept; then the gradients.
void layer(cublasLtHandle_t handle) {
  const int inputs = 24, outputs = 16, tokens = 40;
  using T = __nv_bfloat16;
  Array<T> w(inputs * outputs), x(inputs * tokens), bias(outputs), out(outputs * tokens);
  Array<T> before(outputs * tokens), gradient(inputs * tokens), of_bias(outputs);
  fill(w, 1);
  fill(x, 2);
  fill(bias, 3);
  Matmul forward(handle, CUDA_R_16BF, outputs, tokens, inputs, true, false);
  forward.epilogue(CUBLASLT_EPILOGUE_GELU_AUX_BIAS, bias.device, before.device, outputs);
  forward.run(w.device, x.device, out.device);
  out.down();
  before.down();
  for (int i = 0; i < outputs * tokens; ++i) {
    double sum = static_cast<float>(bias[i % outputs]);
    for (int l = 0; l < inputs; ++l) {
      sum += static_cast<float>(w[l + i % outputs * inputs]) *
             static_cast<float>(x[l + i / outputs * inputs]);
    }
    CHECK(near(static_cast<float>(before[i]), sum, 0.01));
    CHECK(near(static_cast<float>(out[i]), gelu(sum), 0.01));
  }
  // The gradient of an argument x of gelu, here of the layer's inputs themselves.
  Matmul backward(handle, CUDA_R_16BF, inputs, tokens, outputs, false, false);
  backward.epilogue(CUBLASLT_EPILOGUE_DGELU, static_cast<T*>(nullptr), x.device, inputs);
  backward.run(w.device, out.device, gradient.device);
  gradient.down();
  for (int i = 0; i < inputs * tokens; ++i) {
    double sum = 0;
    for (int l = 0; l < outputs; ++l) {
      sum += static_cast<float>(w[i % inputs + l * inputs]) *
             static_cast<float>(out[l + i / inputs * outputs]);
    }
    const double at = static_cast<float>(x[i]), h = 1e-4;
    CHECK(
        near(static_cast<float>(gradient[i]), sum * (gelu(at + h) - gelu(at - h)) / (2 * h), 0.02));
  }
  // The weights' gradient, added to; beside it that of the bias, a sum over tokens.
  fill(w, 4);
  Matmul weights(handle, CUDA_R_16BF, inputs, outputs, tokens, false, true);
  weights.epilogue(CUBLASLT_EPILOGUE_BGRADB, of_bias.device, static_cast<T*>(nullptr), 0);
  std::vector<float> former;
  for (int i = 0; i < inputs * outputs; ++i) former.push_back(static_cast<float>(w[i]));
  weights.run(x.device, out.device, w.device, 1);
  w.down();
  of_bias.down();
  for (int i = 0; i < inputs * outputs; ++i) {
    double sum = former[static_cast<size_t>(i)], of_output = 0;
    for (int l = 0; l < tokens; ++l) {
      const float o = static_cast<float>(out[i / inputs + l * outputs]);
      sum += static_cast<float>(x[i % inputs + l * inputs]) * o;
      of_output += o;
    }
    CHECK(near(static_cast<float>(w[i]), sum, 0.02));
    CHECK(near(static_cast<float>(of_bias[i / inputs]), of_output, 0.02));
  }
}

/// ReLU keeps a bit for each element, which its gradient reads.
void signs(cublasLtHandle_t handle) {
  const int m = 8, n = 6, k = 4, ld = 128;
  Array<float> a(m * k), b(k * n), d(m * n), bias(m), e(m * n);
  Array<unsigned char> bits(ld * n / 8);
  fill(a, 1);
  fill(b, 2);
  fill(bias, 3);
  Matmul forward(handle, CUDA_R_32F, m, n, k, false, false);
  forward.epilogue(CUBLASLT_EPILOGUE_RELU_AUX_BIAS, bias.device,
                   reinterpret_cast<float*>(bits.device), ld);
  forward.run(a.device, b.device, d.device);
  d.down();
  Matmul backward(handle, CUDA_R_32F, m, n, k, false, false);
  backward.epilogue(CUBLASLT_EPILOGUE_DRELU_BGRAD, bias.device,
                    reinterpret_cast<float*>(bits.device), ld);
  std::vector<float> added(bias.host, bias.host + m);
  backward.run(a.device, b.device, e.device);
  e.down();
  bias.down();
  std::vector<double> sums(m);
  int positive = 0;
  for (int i = 0; i < m * n; ++i) {
    double sum = 0;
    for (int l = 0; l < k; ++l) sum += a[i % m + l * m] * b[l + i / m * k];
    const bool on = sum + added[static_cast<size_t>(i % m)] > 0;
    positive += on ? 1 : 0;
    CHECK(near(d[i], on ? sum + added[static_cast<size_t>(i % m)] : 0, 1e-5));
    CHECK(near(e[i], on ? sum : 0, 1e-5));
    sums[static_cast<size_t>(i % m)] += on ? sum : 0;
  }
  CHECK(positive > 5 && positive < m * n - 5);
  for (int i = 0; i < m; ++i) CHECK(near(bias[i], sums[static_cast<size_t>(i)], 1e-5));
}

/// Three products of matrices by rows.
void by_rows(cublasLtHandle_t handle) {
  const int m = 5, n = 7, k = 3, batches = 3;
  Array<float> a(batches * m * k), b(k * n), d(batches * m * n);
  fill(a, 1);
  fill(b, 2);
  Matmul product(handle, CUDA_R_32F, m, n, k, false, false);
  const int order = CUBLASLT_ORDER_ROW;
  const cublasLtMatrixLayout_t layouts[] = {product.a, product.b, product.d};
  const int64_t lds[] = {k, n, n}, strides[] = {m * k, 0, m * n};
  for (int i = 0; i < 3; ++i) {
    BLAS(cublasLtMatrixLayoutSetAttribute(layouts[i], CUBLASLT_MATRIX_LAYOUT_ORDER, &order,
                                          sizeof(order)));
    BLAS(cublasLtMatrixLayoutSetAttribute(layouts[i], CUBLASLT_MATRIX_LAYOUT_LD, &lds[i],
                                          sizeof(lds[i])));
    BLAS(cublasLtMatrixLayoutSetAttribute(layouts[i], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches,
                                          sizeof(batches)));
    BLAS(cublasLtMatrixLayoutSetAttribute(layouts[i], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                          &strides[i], sizeof(strides[i])));
  }
  product.run(a.device, b.device, d.device);
  d.down();
  for (int i = 0; i < batches * m * n; ++i) {
    double sum = 0;
    for (int l = 0; l < k; ++l) sum += a[i / n * k + l] * b[l * n + i % n];
    CHECK(near(d[i], sum, 1e-5));
  }
}

/// Bytes with a factor for each matrix; the result's largest magnitude is noted.
void eight_bits(cublasLtHandle_t handle) {
  const int m = 16, n = 32, k = 48;
  Array<__nv_fp8_e4m3> a(k * m), d(m * n);
  Array<__nv_fp8_e5m2> b(k * n);
  Array<__nv_bfloat16> c(m * n);
  Array<float> factors(4);
  for (int i = 0; i < k * m; ++i) a[i] = __nv_fp8_e4m3(static_cast<float>(i % 7 - 3));
  for (int i = 0; i < k * n; ++i) b[i] = __nv_fp8_e5m2(static_cast<float>(i % 5 - 2));
  a.up();
  b.up();
  const float given[] = {0.5f, 0.25f, 2.0f, 0.0f};
  for (int i = 0; i < 4; ++i) factors[i] = given[i];
  factors.up();
  Matmul product(handle, CUDA_R_8F_E4M3, m, n, k, true, false);
  const int type_b = CUDA_R_8F_E5M2;
  BLAS(cublasLtMatrixLayoutSetAttribute(product.b, CUBLASLT_MATRIX_LAYOUT_TYPE, &type_b,
                                        sizeof(type_b)));
  cublasLtMatrixLayout_t layout_c;
  BLAS(cublasLtMatrixLayoutCreate(&layout_c, CUDA_R_16BF, m, n, m));
  product.set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, factors.device);
  product.set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, factors.device + 1);
  product.set(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, factors.device + 2);
  product.set(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, factors.device + 3);
  const float one = 1, zero = 0;
  BLAS(cublasLtMatmul(handle, product.operation, &one, a.device, product.a, b.device, product.b,
                      &zero, c.device, layout_c, d.device, product.d, nullptr, nullptr, 0, 0));
  d.down();
  factors.down();
  float largest = 0;
  for (int i = 0; i < m * n; ++i) {
    float sum = 0;
    for (int l = 0; l < k; ++l) {
      sum += 0.125f * static_cast<float>(a[l + i % m * k]) * static_cast<float>(b[l + i / m * k]);
    }
    largest = std::fmax(largest, std::fabs(sum));
    CHECK(near(static_cast<float>(d[i]), 2 * sum, 0.07));
  }
  CHECK(largest > 1 && near(factors[3], largest, 0.07));
  BLAS(cublasLtMatrixLayoutDestroy(layout_c));
}

int main() {
  cublasLtHandle_t handle;
  BLAS(cublasLtCreate(&handle));
  layer(handle);
  signs(handle);
  by_rows(handle);
  eight_bits(handle);
  BLAS(cublasLtDestroy(handle));
  return ok();
}
