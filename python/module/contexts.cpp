// SPDX-License-Identifier: Apache-2.0
// Contexts of calls that are given none. Each thread has its own, since a context serves one
// thread.
#include "python/module/contexts.hpp"

#include <algorithm>
#include <climits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "python/module/errors.hpp"

namespace rung::python {
namespace {

struct ContextObject {
  PyObject_HEAD Context* context;
};

PyTypeObject* context_type = nullptr;

Context& context_in(PyObject* self) { return *reinterpret_cast<ContextObject*>(self)->context; }

constexpr const char* choice_names[] = {"repeatable", "fastest"};

Choice parse_choice(const std::string& text) {
  if (text == choice_names[0]) return Choice::repeatable;
  if (text == choice_names[1]) return Choice::fastest;
  throw Error(ErrorCode::invalid_argument,
              "Context: choice is '" + text + "'; accepted: repeatable, fastest");
}

constexpr const char* tuning_names[] = {"off", "remembered", "first_call"};

Tuning parse_tuning(const std::string& text) {
  for (const Tuning one : {Tuning::off, Tuning::remembered, Tuning::first_call}) {
    if (text == tuning_names[static_cast<int>(one)]) return one;
  }
  throw Error(ErrorCode::invalid_argument,
              "Context: tuning is '" + text + "'; accepted: off, remembered, first_call");
}

Context make_context(Backend backend, int device, int threads, void* stream) {
  if (device != 0 && backend != Backend::cuda && backend != Backend::opencl) {
    throw Error(ErrorCode::invalid_argument, "Context: device is " + std::to_string(device) + "; " +
                                                 to_string(backend) + " has device 0 alone");
  }
  if (backend == Backend::cuda) return Context::cuda(device, stream);
  if (stream != nullptr) {
    throw Error(ErrorCode::invalid_argument,
                std::string("Context: stream is given; ") + to_string(backend) + " has none");
  }
  if (backend == Backend::opencl) return Context::on_device({backend, device});
  return Context::on(backend, threads);
}

/// Reads a number of threads or a device; null where it is None.
int small_integer(PyObject* given, const char* name, int left_out) {
  if (given == nullptr || given == Py_None) return left_out;
  const long number = PyLong_AsLong(given);
  if (number == -1 && PyErr_Occurred() != nullptr) throw PythonError{};
  if (number < 0 || number > INT_MAX) {
    throw Error(ErrorCode::invalid_argument, std::string("Context: ") + name + " is " +
                                                 std::to_string(number) + "; accepted: 0 and more");
  }
  return static_cast<int>(number);
}

PyObject* new_context(PyTypeObject* type, PyObject* positional, PyObject* named) {
  return guarded([&]() -> PyObject* {
    const char* backend = "cpu";
    const char* choice = choice_names[0];
    const char* tuning = nullptr;  // as the environment says
    PyObject *device = nullptr, *threads = nullptr, *stream = nullptr;
    char names[6][8] = {"backend", "device", "threads", "choice", "stream", "tuning"};
    char* keywords[] = {names[0], names[1], names[2], names[3], names[4], names[5], nullptr};
    if (PyArg_ParseTupleAndKeywords(positional, named, "|s$OOsOz:Context", keywords, &backend,
                                    &device, &threads, &choice, &stream, &tuning) == 0) {
      throw PythonError{};
    }
    const int index = small_integer(device, "device", 0);
    const int count = small_integer(threads, "threads", 0);
    void* handle = nullptr;
    if (stream != nullptr && stream != Py_None) {
      handle = PyLong_AsVoidPtr(stream);
      if (PyErr_Occurred() != nullptr) throw PythonError{};
    }
    auto context =
        std::make_unique<Context>(make_context(parse_backend(backend), index, count, handle));
    context->set_choice(parse_choice(choice));
    if (tuning != nullptr) context->set_tuning(parse_tuning(tuning));
    const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
    Object self = checked(allocate(type, 0));
    reinterpret_cast<ContextObject*>(self.get())->context = context.release();
    return self.release();
  });
}

void free_context(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  delete reinterpret_cast<ContextObject*>(self)->context;
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyObject* show_context(PyObject* self) {
  return guarded([&] {
    const Context& context = context_in(self);
    std::string text = std::string("rung.Context('") + to_string(context.backend()) + "'";
    if (context.device().index != 0) {
      text += ", device=" + std::to_string(context.device().index);
    }
    if (in_host_memory(context.backend())) text += ", threads=" + std::to_string(context.threads());
    if (context.choice() == Choice::fastest) text += ", choice='fastest'";
    if (context.tuning() != Tuning::off) {
      text += std::string(", tuning='") + tuning_names[static_cast<int>(context.tuning())] + "'";
    }
    return PyUnicode_FromString((text + ")").c_str());
  });
}

PyObject* synchronize(PyObject* self, PyObject* /*nothing*/) {
  return guarded([&] {
    {
      const Released released;
      context_in(self).synchronize();
    }
    Py_INCREF(Py_None);
    return Py_None;
  });
}

PyObject* get_backend(PyObject* self, void* /*closure*/) {
  return PyUnicode_FromString(to_string(context_in(self).backend()));
}
PyObject* get_device(PyObject* self, void* /*closure*/) {
  return PyLong_FromLong(context_in(self).device().index);
}
PyObject* get_device_name(PyObject* self, void* /*closure*/) {
  return PyUnicode_FromString(context_in(self).info().name.c_str());
}
PyObject* get_threads(PyObject* self, void* /*closure*/) {
  return PyLong_FromLong(context_in(self).threads());
}
PyObject* get_stream(PyObject* self, void* /*closure*/) {
  return PyLong_FromVoidPtr(context_in(self).stream());
}
PyObject* get_choice(PyObject* self, void* /*closure*/) {
  return PyUnicode_FromString(choice_names[static_cast<int>(context_in(self).choice())]);
}

PyObject* get_tuning(PyObject* self, void* /*closure*/) {
  return PyUnicode_FromString(tuning_names[static_cast<int>(context_in(self).tuning())]);
}

PyMethodDef methods[] = {{"synchronize", synchronize, METH_NOARGS,
                          "synchronize($self)\n--\n\nWaits until the work of this context is done; "
                          "raises Error for what failed in it."},
                         {nullptr, nullptr, 0, nullptr}};
PyGetSetDef properties[] = {
    {"backend", get_backend, nullptr, "\"cpu\", \"cuda\", \"simt\" or \"opencl\".", nullptr},
    {"device", get_device, nullptr, "Index of the device; 0 for host memory.", nullptr},
    {"device_name", get_device_name, nullptr, "Name of the device, or the CPU's.", nullptr},
    {"threads", get_threads, nullptr, "Number of threads, on cpu and simt.", nullptr},
    {"stream", get_stream, nullptr, "Address of the CUDA stream; 0: the default stream.", nullptr},
    {"choice", get_choice, nullptr, "\"repeatable\" or \"fastest\".", nullptr},
    {"tuning", get_tuning, nullptr, "\"off\", \"remembered\" or \"first_call\".", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
constexpr const char* about =
    "Context(backend='cpu', *, device=0, threads=None, choice='repeatable', stream=None, "
    "tuning=None)\n--\n\n"
    "Backend, device, threads and scratch memory of calls that are given context=.\n\n"
    "backend: 'cpu', 'cuda', 'simt' (the simulated GPU, on arrays in host memory) or 'opencl'.\n"
    "device: index of the GPU. threads: of cpu and simt; None: every core that the process may\n"
    "use. choice: 'repeatable' gives the same bits for any number of threads, 'fastest' may not.\n"
    "stream: address of a CUDA stream; None: the default stream. tuning: 'off' estimates which\n"
    "kernel is fastest, 'remembered' takes what was measured before, 'first_call' measures what\n"
    "was not; None: the word of the environment variable RUNG_TUNE, or 'off'.\n\n"
    "A context serves one thread at a time: a call on one that another thread is using raises\n"
    "Error. Without context=, each thread has a context of its own per device and stream.\n\n"
    ">>> rung.Context('cpu', threads=2).threads\n2\n";

struct OwnContext {
  Device device;
  void* stream;
  std::unique_ptr<Context> context;
  [[nodiscard]] bool is_at(const ArrayPlacement& place) const {
    return device == place.device && stream == place.stream;
  }
};

/// A GPU's contexts that no thread uses. They are used again and never freed: a CUDA graph may have
/// been captured with their scratch memory.
struct Retired {
  std::mutex mutex;
  std::vector<OwnContext> contexts;
};
Retired& retired() {
  static auto* const all = new Retired;  // the driver may be gone when static objects are
  return *all;
}

/// Contexts of one thread.
class OwnContexts {
 public:
  OwnContexts() = default;
  OwnContexts(const OwnContexts&) = delete;
  OwnContexts& operator=(const OwnContexts&) = delete;
  ~OwnContexts() {
    const std::lock_guard lock(retired().mutex);
    for (OwnContext& one : contexts_) {
      if (one.device.backend == Backend::cuda) retired().contexts.push_back(std::move(one));
    }
  }

  Context& of(const ArrayPlacement& place) {
    for (const OwnContext& one : contexts_) {
      if (one.is_at(place)) return *one.context;
    }
    contexts_.push_back(make(place));
    return *contexts_.back().context;
  }

 private:
  static OwnContext make(const ArrayPlacement& place) {
    if (!place.on_device) {
      return {place.device, place.stream, std::make_unique<Context>(Context::cpu())};
    }
    {
      const std::lock_guard lock(retired().mutex);
      std::vector<OwnContext>& all = retired().contexts;
      const auto found = std::find_if(all.begin(), all.end(),
                                      [&](const OwnContext& one) { return one.is_at(place); });
      if (found != all.end()) {
        OwnContext again = std::move(*found);
        all.erase(found);
        return again;
      }
    }
    return {place.device, place.stream,
            std::make_unique<Context>(Context::cuda(place.device.index, place.stream))};
  }

  std::vector<OwnContext> contexts_;
};

}  // namespace

Object make_context_type() {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(new_context)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(free_context)},
                         {Py_tp_repr, reinterpret_cast<void*>(show_context)},
                         {Py_tp_methods, methods},
                         {Py_tp_getset, properties},
                         {Py_tp_doc, const_cast<char*>(about)},
                         {0, nullptr}};
  PyType_Spec spec = {"rung.Context", sizeof(ContextObject), 0, Py_TPFLAGS_DEFAULT, slots};
  Object type = checked(PyType_FromSpec(&spec));
  context_type = reinterpret_cast<PyTypeObject*>(type.get());
  return type;
}

Context& context_of(PyObject* argument, const ArrayPlacement& place, const char* op) {
  if (argument != Py_None) {
    if (Py_TYPE(argument) != context_type) {
      throw_type_error(std::string(op) + ": context is a " + type_name(argument) +
                       "; accepted: a rung.Context");
    }
    return context_in(argument);
  }
  thread_local OwnContexts own;
  return own.of(place);
}

}  // namespace rung::python
