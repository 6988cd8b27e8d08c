// SPDX-License-Identifier: Apache-2.0
// Texture and surface objects: point and linear filtering with the address modes and coordinates of
// the programming guide's chapter on texture fetching.
#pragma once

#include "rung_cuda/runtime_api.h"
#include "rung_cuda/vector_types.h"

namespace rung::cuda {

/// Channels of an element as numbers. Integers are unchanged or, if the texture normalizes them,
/// scaled to [0, 1] (unsigned) or [-1, 1] (signed).
struct Texel {
  double channel[4];
};
/// Samples at coordinates x, y, z, of which the first `dimensions` are used. `layer`: layer of a
/// layered texture. `whole_coordinates`: coordinates are element indices.
Texel sample(cudaTextureObject_t texture, int dimensions, float x, float y, float z, int layer,
             bool whole_coordinates);
/// Samples at level of detail `lod`: at the nearest level, or interpolated between two levels,
/// according to the texture's mipmap filter mode.
Texel sample_level(cudaTextureObject_t texture, int dimensions, float x, float y, float z,
                   float lod);
/// Samples a cube map in direction (x, y, z).
Texel sample_cube(cudaTextureObject_t texture, float x, float y, float z, int layer);
/// Returns one channel of the four elements that linear filtering would blend (tex2Dgather).
Texel gather(cudaTextureObject_t texture, float x, float y, int channel);
/// Returns the address of a surface's element; null if it is out of bounds, where stores have no
/// effect.
void* surface_element(cudaSurfaceObject_t surface, int x, int y, int z, size_t bytes,
                      cudaSurfaceBoundaryMode mode);

template <class T>
struct Channels;
#define RUNG_CHANNELS(name, type)                                                     \
  template <>                                                                         \
  struct Channels<type> {                                                             \
    static type make(const Texel& t) { return static_cast<type>(t.channel[0]); }      \
    using Component = type;                                                           \
    static constexpr int count = 1;                                                   \
  };                                                                                  \
  template <>                                                                         \
  struct Channels<name##1> {                                                          \
    static name##1 make(const Texel& t) { return {static_cast<type>(t.channel[0])}; } \
    using Component = type;                                                           \
    static constexpr int count = 1;                                                   \
  };                                                                                  \
  template <>                                                                         \
  struct Channels<name##2> {                                                          \
    static name##2 make(const Texel& t) {                                             \
      return {static_cast<type>(t.channel[0]), static_cast<type>(t.channel[1])};      \
    }                                                                                 \
    using Component = type;                                                           \
    static constexpr int count = 2;                                                   \
  };                                                                                  \
  template <>                                                                         \
  struct Channels<name##4> {                                                          \
    static name##4 make(const Texel& t) {                                             \
      return {static_cast<type>(t.channel[0]), static_cast<type>(t.channel[1]),       \
              static_cast<type>(t.channel[2]), static_cast<type>(t.channel[3])};      \
    }                                                                                 \
    using Component = type;                                                           \
    static constexpr int count = 4;                                                   \
  };
RUNG_CHANNELS(char, signed char)
RUNG_CHANNELS(uchar, unsigned char)
RUNG_CHANNELS(short, short)
RUNG_CHANNELS(ushort, unsigned short)
RUNG_CHANNELS(int, int)
RUNG_CHANNELS(uint, unsigned)
RUNG_CHANNELS(float, float)
#undef RUNG_CHANNELS
template <>
struct Channels<char> : Channels<signed char> {};

}  // namespace rung::cuda

template <class T>
inline cudaChannelFormatDesc cudaCreateChannelDesc() {
  using Channel = rung::cuda::Channels<T>;
  using Component = typename Channel::Component;
  const int bits = 8 * sizeof(Component);
  const bool real = Component(0.5) != Component(0), is_signed = Component(-1) < Component(0);
  return {bits, Channel::count > 1 ? bits : 0, Channel::count > 2 ? bits : 0,
          Channel::count > 2 ? bits : 0,
          real        ? cudaChannelFormatKindFloat
          : is_signed ? cudaChannelFormatKindSigned
                      : cudaChannelFormatKindUnsigned};
}

// Each fetch exists in two forms: with a return value, and with an output pointer.
#define RUNG_FETCH(name, parameters, call)                  \
  template <class T>                                        \
  inline T name parameters {                                \
    return rung::cuda::Channels<T>::make(rung::cuda::call); \
  }
RUNG_FETCH(tex1Dfetch, (cudaTextureObject_t t, int x),
           sample(t, 1, static_cast<float>(x), 0, 0, x, true))
RUNG_FETCH(tex1D, (cudaTextureObject_t t, float x), sample(t, 1, x, 0, 0, 0, false))
RUNG_FETCH(tex2D, (cudaTextureObject_t t, float x, float y), sample(t, 2, x, y, 0, 0, false))
RUNG_FETCH(tex3D, (cudaTextureObject_t t, float x, float y, float z),
           sample(t, 3, x, y, z, 0, false))
RUNG_FETCH(tex1DLayered, (cudaTextureObject_t t, float x, int layer),
           sample(t, 1, x, 0, 0, layer, false))
RUNG_FETCH(tex2DLayered, (cudaTextureObject_t t, float x, float y, int layer),
           sample(t, 2, x, y, 0, layer, false))
RUNG_FETCH(texCubemap, (cudaTextureObject_t t, float x, float y, float z),
           sample_cube(t, x, y, z, 0))
RUNG_FETCH(texCubemapLayered, (cudaTextureObject_t t, float x, float y, float z, int layer),
           sample_cube(t, x, y, z, layer))
RUNG_FETCH(tex2Dgather, (cudaTextureObject_t t, float x, float y, int channel = 0),
           gather(t, x, y, channel))
RUNG_FETCH(tex1DLod, (cudaTextureObject_t t, float x, float lod), sample_level(t, 1, x, 0, 0, lod))
RUNG_FETCH(tex2DLod, (cudaTextureObject_t t, float x, float y, float lod),
           sample_level(t, 2, x, y, 0, lod))
RUNG_FETCH(tex3DLod, (cudaTextureObject_t t, float x, float y, float z, float lod),
           sample_level(t, 3, x, y, z, lod))
#undef RUNG_FETCH
template <class T>
inline void tex1Dfetch(T* to, cudaTextureObject_t t, int x) {
  *to = tex1Dfetch<T>(t, x);
}
template <class T>
inline void tex1D(T* to, cudaTextureObject_t t, float x) {
  *to = tex1D<T>(t, x);
}
template <class T>
inline void tex2D(T* to, cudaTextureObject_t t, float x, float y) {
  *to = tex2D<T>(t, x, y);
}
template <class T>
inline void tex3D(T* to, cudaTextureObject_t t, float x, float y, float z) {
  *to = tex3D<T>(t, x, y, z);
}

// Surface functions. Coordinate x is in bytes.
#define RUNG_SURFACE(name, coordinates, place)                                         \
  template <class T>                                                                   \
  inline T surf##name##read(cudaSurfaceObject_t s, coordinates,                        \
                            cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {     \
    T value{};                                                                         \
    if (const void* from = rung::cuda::surface_element place) {                        \
      value = *static_cast<const T*>(from);                                            \
    }                                                                                  \
    return value;                                                                      \
  }                                                                                    \
  template <class T>                                                                   \
  inline void surf##name##read(T* to, cudaSurfaceObject_t s, coordinates,              \
                               cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {  \
    *to = T{};                                                                         \
    if (const void* from = rung::cuda::surface_element place) {                        \
      *to = *static_cast<const T*>(from);                                              \
    }                                                                                  \
  }                                                                                    \
  template <class T>                                                                   \
  inline void surf##name##write(T value, cudaSurfaceObject_t s, coordinates,           \
                                cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) { \
    if (void* to = rung::cuda::surface_element place) *static_cast<T*>(to) = value;    \
  }
#define RUNG_COMMA ,
RUNG_SURFACE(1D, int x, (s, x, 0, 0, sizeof(T), mode))
RUNG_SURFACE(2D, int x RUNG_COMMA int y, (s, x, y, 0, sizeof(T), mode))
RUNG_SURFACE(3D, int x RUNG_COMMA int y RUNG_COMMA int z, (s, x, y, z, sizeof(T), mode))
RUNG_SURFACE(2DLayered, int x RUNG_COMMA int y RUNG_COMMA int z, (s, x, y, z, sizeof(T), mode))
#undef RUNG_COMMA
#undef RUNG_SURFACE
