// SPDX-License-Identifier: Apache-2.0
// Follows each kernel string and describes its kernels and variables to the worker. _compile.py
// writes the lines that name them, an entry per line, and the end of the function.
#include <cxxabi.h>

#include <cstdlib>
#include <string>
#include <type_traits>
#include <typeinfo>

namespace rung_module {

template <class T>
std::string type_name() {
  int status = 0;
  char* const name = abi::__cxa_demangle(typeid(T).name(), nullptr, nullptr, &status);
  const std::string text = status == 0 ? name : typeid(T).name();
  std::free(name);
  return text;
}

/// "any" for types whose bytes may be anything.
template <class T>
const char* kind_of() {
  using U = std::remove_cv_t<T>;
  if (std::is_same_v<U, bool>) return "bool";
  if (std::is_floating_point_v<U>) return "float";
  if (std::is_enum_v<U>) return "int";
  if (std::is_integral_v<U>) return std::is_signed_v<U> ? "int" : "uint";
  if (std::is_pointer_v<U>) return "pointer";
  return "any";
}

template <class T>
std::string describe_type() {
  std::string text = "{\"type\":\"" + type_name<T>() + "\",\"kind\":\"" + kind_of<T>() + "\"";
  if constexpr (std::is_void_v<T> || std::is_function_v<T>) {
    text += ",\"bytes\":0";
  } else {
    text += ",\"bytes\":" + std::to_string(sizeof(T));
  }
  return text + ",\"const\":" + (std::is_const_v<T> ? "true" : "false");
}

template <class P>
std::string describe_parameter() {
  using T = typename rung::cuda::Passed<P>::Type;
  std::string text = describe_type<T>();
  if constexpr (std::is_pointer_v<T>) {
    text += ",\"to\":" + describe_type<std::remove_pointer_t<T>>() + "}";
  }
  return text + "},";
}

template <class... P>
void kernel(std::string& text, const char* name, void (*code)(P...)) {
  const void* const address = rung::cuda::known(code);
  std::string parameters = (std::string() + ... + describe_parameter<P>());
  if (!parameters.empty()) parameters.pop_back();
  text += "{\"kernel\":\"" + std::string(name) +
          "\",\"address\":" + std::to_string(reinterpret_cast<unsigned long>(address)) +
          ",\"parameters\":[" + parameters + "]},";
}

template <class T>
void variable(std::string& text, const char* name, T& one,
              void (*note)(const void*, unsigned long)) {
  const auto* const address = &reinterpret_cast<const volatile char&>(one);
  note(const_cast<const char*>(address), sizeof(T));
  text += "{\"variable\":\"" + std::string(name) +
          "\",\"address\":" + std::to_string(reinterpret_cast<unsigned long>(address)) +
          ",\"bytes\":" + std::to_string(sizeof(T)) + ",\"type\":\"" + type_name<T>() + "\"},";
}

const char* finish(std::string& text) {
  if (text.back() == ',') text.pop_back();
  return (text += "]").c_str();
}

}  // namespace rung_module

extern "C" const char* rung_module_describe(void (*note)(const void*, unsigned long)) {
  static std::string text;
  text = "[";
