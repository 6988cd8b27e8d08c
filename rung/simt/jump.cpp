// SPDX-License-Identifier: Apache-2.0
// Context switch between stacks: hand-written on x86-64, Boost.Context elsewhere.
//
// Boost's switch also saves the floating-point control words, which are the same in all threads of
// a kernel, and resumes by a jump although the suspension was a call. The unbalanced return-stack
// predictor then mispredicts every later `ret`. The x86-64 version resumes by a `ret`, which
// usually goes to the predicted address because most threads wait at the same call. [AMD EPYC, Zen
// 5: 10^8 barriers of a block of 256 threads: 2.1 s with Boost, 1.1 s with this version]
#include "rung/simt/jump.hpp"

#include <cstdint>

#if !defined(__x86_64__)
#include <boost/context/detail/fcontext.hpp>
#endif

namespace rung::simt {

#if defined(__x86_64__)

static_assert(offsetof(Fiber, context) == 0);

// Pushes the callee-saved registers; the caller has saved all others.
extern "C" [[gnu::naked]] int rung_simt_jump(Fiber* /*from*/, Fiber* /*to*/) {
  asm(R"(
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq (%rsi), %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    xorl %eax, %eax
    ret
  )");
}

void* new_context(std::byte* top, std::size_t /*size*/) {
  // On entry to a function the stack pointer is 8 modulo 16 and points to the return address, which
  // is 0, the value at which stack unwinders stop.
  constexpr std::size_t registers = 6;
  auto* const end = reinterpret_cast<std::uintptr_t*>(reinterpret_cast<std::uintptr_t>(top) &
                                                      ~std::uintptr_t{15});
  end[-1] = 0;
  // rung_simt_jump() leaves its first argument in the register of run_fiber()'s first parameter.
  end[-2] = reinterpret_cast<std::uintptr_t>(&run_fiber);
  std::uintptr_t* const context = end - 2 - registers;
  for (std::size_t i = 0; i < registers; ++i) context[i] = 0;
  return context;
}

#else

using boost::context::detail::transfer_t;

namespace {

void begin(transfer_t arrival) {
  Fiber& starter = *static_cast<Fiber*>(arrival.data);
  starter.context = arrival.fctx;
  run_fiber(starter);
}

}  // namespace

extern "C" int rung_simt_jump(Fiber* from, Fiber* to) {
  const transfer_t arrival = boost::context::detail::jump_fcontext(to->context, from);
  static_cast<Fiber*>(arrival.data)->context = arrival.fctx;
  return 0;
}

void* new_context(std::byte* top, std::size_t size) {
  return boost::context::detail::make_fcontext(top, size, begin);
}

#endif

}  // namespace rung::simt
