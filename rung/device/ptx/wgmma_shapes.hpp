// SPDX-License-Identifier: Apache-2.0
// Inline assembly of ptx/wgmma.hpp: one instruction per width N, because assembly names every
// register of the sums by number. Types and options are inserted as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "rung/core/dtype.hpp"
#include "rung/device/target.hpp"

namespace rung::inline RUNG_TARGET::ptx {

struct tf32;

namespace device_detail {

/// String that is concatenated at compile time.
struct AsmText {
  char data[64] = {};
  std::size_t length = 0;

  __host__ __device__ constexpr AsmText& operator+=(const char* text) {
    while (*text != 0) data[length++] = *text++;
    return *this;
  }
};

template <class T>
constexpr const char* wgmma_operand() {
  if constexpr (std::is_same_v<T, f16>) return ".f16";
  if constexpr (std::is_same_v<T, bf16>) return ".bf16";
  if constexpr (std::is_same_v<T, tf32>) return ".tf32";
  if constexpr (std::is_same_v<T, e4m3>) return ".e4m3";
  if constexpr (std::is_same_v<T, e5m2>) return ".e5m2";
  if constexpr (std::is_same_v<T, std::int8_t>) return ".s8";
  return ".u8";
}

/// Suffix of the instruction's name after the width: K and the types.
template <class A, class B>
struct WgmmaKind {
  static constexpr AsmText make() {
    AsmText text;
    text += sizeof(A) == 2 ? "k16" : std::is_same_v<A, tf32> ? "k8" : "k32";
    text += std::is_integral_v<A> ? ".s32" : ".f32";
    text += wgmma_operand<A>();
    text += wgmma_operand<B>();
    return text;
  }
};
/// Immediate operands of the instruction: signs, and for 16-bit operands in shared memory whether
/// they are MN-major.
template <class A, bool TurnA, bool TurnB, bool NegateA, bool NegateB, bool FromRegisters>
struct WgmmaTail {
  static constexpr AsmText make() {
    AsmText text;
    if (std::is_integral_v<A>) return text;
    text += NegateA ? ", -1" : ", 1";
    text += NegateB ? ", -1" : ", 1";
    if (sizeof(A) == 2 && !FromRegisters) text += TurnA ? ", 1" : ", 0";
    if (sizeof(A) == 2) text += TurnB ? ", 1" : ", 0";
    return text;
  }
};

/// Array of characters with the text, as the "C" constraint of inline assembly requires.
template <class Text, class Index = std::make_index_sequence<Text::make().length + 1>>
struct AsmArray;
template <class Text, std::size_t... I>
struct AsmArray<Text, std::index_sequence<I...>> {
  static constexpr char data[] = {Text::make().data[I]...};
};

template <int N>
struct WgmmaShape;

// Names and constraints of the sums' registers; each list adds 4 registers to the previous one.
#define RUNG_4(letter, i) letter(d[i]), letter(d[i + 1]), letter(d[i + 2]), letter(d[i + 3])
#define RUNG_FLOAT(register) "+f"(register)
#define RUNG_INT(register) "+r"(register)
#define RUNG_NAMES_8 "%0, %1, %2, %3"
#define RUNG_NAMES_16 RUNG_NAMES_8 ", %4, %5, %6, %7"
#define RUNG_NAMES_24 RUNG_NAMES_16 ", %8, %9, %10, %11"
#define RUNG_NAMES_32 RUNG_NAMES_24 ", %12, %13, %14, %15"
#define RUNG_NAMES_40 RUNG_NAMES_32 ", %16, %17, %18, %19"
#define RUNG_NAMES_48 RUNG_NAMES_40 ", %20, %21, %22, %23"
#define RUNG_NAMES_56 RUNG_NAMES_48 ", %24, %25, %26, %27"
#define RUNG_NAMES_64 RUNG_NAMES_56 ", %28, %29, %30, %31"
#define RUNG_NAMES_72 RUNG_NAMES_64 ", %32, %33, %34, %35"
#define RUNG_NAMES_80 RUNG_NAMES_72 ", %36, %37, %38, %39"
#define RUNG_NAMES_88 RUNG_NAMES_80 ", %40, %41, %42, %43"
#define RUNG_NAMES_96 RUNG_NAMES_88 ", %44, %45, %46, %47"
#define RUNG_NAMES_104 RUNG_NAMES_96 ", %48, %49, %50, %51"
#define RUNG_NAMES_112 RUNG_NAMES_104 ", %52, %53, %54, %55"
#define RUNG_NAMES_120 RUNG_NAMES_112 ", %56, %57, %58, %59"
#define RUNG_NAMES_128 RUNG_NAMES_120 ", %60, %61, %62, %63"
#define RUNG_NAMES_136 RUNG_NAMES_128 ", %64, %65, %66, %67"
#define RUNG_NAMES_144 RUNG_NAMES_136 ", %68, %69, %70, %71"
#define RUNG_NAMES_152 RUNG_NAMES_144 ", %72, %73, %74, %75"
#define RUNG_NAMES_160 RUNG_NAMES_152 ", %76, %77, %78, %79"
#define RUNG_NAMES_168 RUNG_NAMES_160 ", %80, %81, %82, %83"
#define RUNG_NAMES_176 RUNG_NAMES_168 ", %84, %85, %86, %87"
#define RUNG_NAMES_184 RUNG_NAMES_176 ", %88, %89, %90, %91"
#define RUNG_NAMES_192 RUNG_NAMES_184 ", %92, %93, %94, %95"
#define RUNG_NAMES_200 RUNG_NAMES_192 ", %96, %97, %98, %99"
#define RUNG_NAMES_208 RUNG_NAMES_200 ", %100, %101, %102, %103"
#define RUNG_NAMES_216 RUNG_NAMES_208 ", %104, %105, %106, %107"
#define RUNG_NAMES_224 RUNG_NAMES_216 ", %108, %109, %110, %111"
#define RUNG_NAMES_232 RUNG_NAMES_224 ", %112, %113, %114, %115"
#define RUNG_NAMES_240 RUNG_NAMES_232 ", %116, %117, %118, %119"
#define RUNG_NAMES_248 RUNG_NAMES_240 ", %120, %121, %122, %123"
#define RUNG_NAMES_256 RUNG_NAMES_248 ", %124, %125, %126, %127"
#define RUNG_SUMS_8(letter) RUNG_4(letter, 0)
#define RUNG_SUMS_16(letter) RUNG_SUMS_8(letter), RUNG_4(letter, 4)
#define RUNG_SUMS_24(letter) RUNG_SUMS_16(letter), RUNG_4(letter, 8)
#define RUNG_SUMS_32(letter) RUNG_SUMS_24(letter), RUNG_4(letter, 12)
#define RUNG_SUMS_40(letter) RUNG_SUMS_32(letter), RUNG_4(letter, 16)
#define RUNG_SUMS_48(letter) RUNG_SUMS_40(letter), RUNG_4(letter, 20)
#define RUNG_SUMS_56(letter) RUNG_SUMS_48(letter), RUNG_4(letter, 24)
#define RUNG_SUMS_64(letter) RUNG_SUMS_56(letter), RUNG_4(letter, 28)
#define RUNG_SUMS_72(letter) RUNG_SUMS_64(letter), RUNG_4(letter, 32)
#define RUNG_SUMS_80(letter) RUNG_SUMS_72(letter), RUNG_4(letter, 36)
#define RUNG_SUMS_88(letter) RUNG_SUMS_80(letter), RUNG_4(letter, 40)
#define RUNG_SUMS_96(letter) RUNG_SUMS_88(letter), RUNG_4(letter, 44)
#define RUNG_SUMS_104(letter) RUNG_SUMS_96(letter), RUNG_4(letter, 48)
#define RUNG_SUMS_112(letter) RUNG_SUMS_104(letter), RUNG_4(letter, 52)
#define RUNG_SUMS_120(letter) RUNG_SUMS_112(letter), RUNG_4(letter, 56)
#define RUNG_SUMS_128(letter) RUNG_SUMS_120(letter), RUNG_4(letter, 60)
#define RUNG_SUMS_136(letter) RUNG_SUMS_128(letter), RUNG_4(letter, 64)
#define RUNG_SUMS_144(letter) RUNG_SUMS_136(letter), RUNG_4(letter, 68)
#define RUNG_SUMS_152(letter) RUNG_SUMS_144(letter), RUNG_4(letter, 72)
#define RUNG_SUMS_160(letter) RUNG_SUMS_152(letter), RUNG_4(letter, 76)
#define RUNG_SUMS_168(letter) RUNG_SUMS_160(letter), RUNG_4(letter, 80)
#define RUNG_SUMS_176(letter) RUNG_SUMS_168(letter), RUNG_4(letter, 84)
#define RUNG_SUMS_184(letter) RUNG_SUMS_176(letter), RUNG_4(letter, 88)
#define RUNG_SUMS_192(letter) RUNG_SUMS_184(letter), RUNG_4(letter, 92)
#define RUNG_SUMS_200(letter) RUNG_SUMS_192(letter), RUNG_4(letter, 96)
#define RUNG_SUMS_208(letter) RUNG_SUMS_200(letter), RUNG_4(letter, 100)
#define RUNG_SUMS_216(letter) RUNG_SUMS_208(letter), RUNG_4(letter, 104)
#define RUNG_SUMS_224(letter) RUNG_SUMS_216(letter), RUNG_4(letter, 108)
#define RUNG_SUMS_232(letter) RUNG_SUMS_224(letter), RUNG_4(letter, 112)
#define RUNG_SUMS_240(letter) RUNG_SUMS_232(letter), RUNG_4(letter, 116)
#define RUNG_SUMS_248(letter) RUNG_SUMS_240(letter), RUNG_4(letter, 120)
#define RUNG_SUMS_256(letter) RUNG_SUMS_248(letter), RUNG_4(letter, 124)

// p0 to p7: numbers of the operands after the sums.
#define RUNG_WGMMA(n, letter, type, p0, p1, p2, p3, p4, p5, p6, p7)                      \
  template <class Kind, class Tail>                                                      \
  static __device__ __forceinline__ void from_shared(type(&d)[n / 2], std::uint64_t a,   \
                                                     std::uint64_t b, bool accumulate) { \
    asm volatile("{\n .reg .pred p;\n setp.ne.s32 p, %" #p2                              \
                 ", 0;\n"                                                                \
                 " wgmma.mma_async.sync.aligned.m64n" #n "%" #p3 " {" RUNG_NAMES_##n     \
                 "}, %" #p0 ", %" #p1 ", p%" #p4 ";\n}"                                  \
                 : RUNG_SUMS_##n(letter)                                                 \
                 : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)), "C"(Kind::data),   \
                   "C"(Tail::data)                                                       \
                 : "memory");                                                            \
  }                                                                                      \
  template <class Kind, class Tail>                                                      \
  static __device__ __forceinline__ void from_registers(                                 \
      type(&d)[n / 2], const std::uint32_t(&a)[4], std::uint64_t b, bool accumulate) {   \
    asm volatile("{\n .reg .pred p;\n setp.ne.s32 p, %" #p5                              \
                 ", 0;\n"                                                                \
                 " wgmma.mma_async.sync.aligned.m64n" #n "%" #p6 " {" RUNG_NAMES_##n     \
                 "}, {%" #p0 ", %" #p1 ", %" #p2 ", %" #p3 "}, %" #p4 ", p%" #p7 ";\n}"  \
                 : RUNG_SUMS_##n(letter)                                                 \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),                   \
                   "r"(static_cast<int>(accumulate)), "C"(Kind::data), "C"(Tail::data)   \
                 : "memory");                                                            \
  }
#define RUNG_WGMMA_SHAPE(n, ...)                  \
  template <>                                     \
  struct WgmmaShape<n> {                          \
    RUNG_WGMMA(n, RUNG_FLOAT, float, __VA_ARGS__) \
    RUNG_WGMMA(n, RUNG_INT, int, __VA_ARGS__)     \
  };

RUNG_WGMMA_SHAPE(8, 4, 5, 6, 7, 8, 9, 10, 11)
RUNG_WGMMA_SHAPE(16, 8, 9, 10, 11, 12, 13, 14, 15)
RUNG_WGMMA_SHAPE(24, 12, 13, 14, 15, 16, 17, 18, 19)
RUNG_WGMMA_SHAPE(32, 16, 17, 18, 19, 20, 21, 22, 23)
RUNG_WGMMA_SHAPE(40, 20, 21, 22, 23, 24, 25, 26, 27)
RUNG_WGMMA_SHAPE(48, 24, 25, 26, 27, 28, 29, 30, 31)
RUNG_WGMMA_SHAPE(56, 28, 29, 30, 31, 32, 33, 34, 35)
RUNG_WGMMA_SHAPE(64, 32, 33, 34, 35, 36, 37, 38, 39)
RUNG_WGMMA_SHAPE(72, 36, 37, 38, 39, 40, 41, 42, 43)
RUNG_WGMMA_SHAPE(80, 40, 41, 42, 43, 44, 45, 46, 47)
RUNG_WGMMA_SHAPE(88, 44, 45, 46, 47, 48, 49, 50, 51)
RUNG_WGMMA_SHAPE(96, 48, 49, 50, 51, 52, 53, 54, 55)
RUNG_WGMMA_SHAPE(104, 52, 53, 54, 55, 56, 57, 58, 59)
RUNG_WGMMA_SHAPE(112, 56, 57, 58, 59, 60, 61, 62, 63)
RUNG_WGMMA_SHAPE(120, 60, 61, 62, 63, 64, 65, 66, 67)
RUNG_WGMMA_SHAPE(128, 64, 65, 66, 67, 68, 69, 70, 71)
RUNG_WGMMA_SHAPE(136, 68, 69, 70, 71, 72, 73, 74, 75)
RUNG_WGMMA_SHAPE(144, 72, 73, 74, 75, 76, 77, 78, 79)
RUNG_WGMMA_SHAPE(152, 76, 77, 78, 79, 80, 81, 82, 83)
RUNG_WGMMA_SHAPE(160, 80, 81, 82, 83, 84, 85, 86, 87)
RUNG_WGMMA_SHAPE(168, 84, 85, 86, 87, 88, 89, 90, 91)
RUNG_WGMMA_SHAPE(176, 88, 89, 90, 91, 92, 93, 94, 95)
RUNG_WGMMA_SHAPE(184, 92, 93, 94, 95, 96, 97, 98, 99)
RUNG_WGMMA_SHAPE(192, 96, 97, 98, 99, 100, 101, 102, 103)
RUNG_WGMMA_SHAPE(200, 100, 101, 102, 103, 104, 105, 106, 107)
RUNG_WGMMA_SHAPE(208, 104, 105, 106, 107, 108, 109, 110, 111)
RUNG_WGMMA_SHAPE(216, 108, 109, 110, 111, 112, 113, 114, 115)
RUNG_WGMMA_SHAPE(224, 112, 113, 114, 115, 116, 117, 118, 119)
RUNG_WGMMA_SHAPE(232, 116, 117, 118, 119, 120, 121, 122, 123)
RUNG_WGMMA_SHAPE(240, 120, 121, 122, 123, 124, 125, 126, 127)
RUNG_WGMMA_SHAPE(248, 124, 125, 126, 127, 128, 129, 130, 131)
RUNG_WGMMA_SHAPE(256, 128, 129, 130, 131, 132, 133, 134, 135)

}  // namespace device_detail
}  // namespace rung::inline RUNG_TARGET::ptx
