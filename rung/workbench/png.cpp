// SPDX-License-Identifier: Apache-2.0
// libpng reports errors by longjmp, which skips destructors. Each function here that calls setjmp
// therefore has only trivial local variables, calls only libpng, and returns success or failure;
// callbacks catch every C++ exception before libpng jumps. Objects with destructors belong to the
// callers.
#include "rung/workbench/png.hpp"

#include <png.h>

#include <bit>
#include <csetjmp>
#include <cstdint>
#include <exception>
#include <utility>

#include "rung/core/cpu_device.hpp"
#include "rung/core/error.hpp"
#include "rung/core/require.hpp"
#include "rung/harness/file_reader.hpp"
#include "rung/harness/file_writer.hpp"

namespace rung::workbench {
namespace {

constexpr png_uint_32 max_side = 1 << 20;
/// Compressed bytes inflated beyond the last pixel: some encoders write a few.
constexpr std::size_t max_trailing_bytes = std::size_t{16} << 10;
/// Maximum expansion factor of inflate.
constexpr std::uint64_t max_inflation = 1032;

/// Error of libpng or of the file; outlives every longjmp.
struct Trouble {
  std::string message;
  std::exception_ptr thrown;  // by the file

  /// Throws the error as an Error that names the file.
  [[noreturn]] void raise(const std::string& path) const {
    if (thrown) std::rethrow_exception(thrown);
    throw Error(ErrorCode::io, path + ": not a PNG file, or a malformed one: " + message);
  }
};

void keep_message(png_structp png, const char* text) noexcept {
  std::string& message = static_cast<Trouble*>(png_get_error_ptr(png))->message;
  try {
    message = text;
  } catch (...) {
    message.clear();  // out of memory: no message
  }
}
[[noreturn]] void on_error(png_structp png, png_const_charp text) {
  keep_message(png, text);
  png_longjmp(png, 1);
}
/// Ignores warnings of libpng, such as a wrong checksum of a comment.
void on_warning(png_structp, png_const_charp) {}

/// Calls f on the callback's file. Returns false and stores the exception if it throws.
template <class File, class F>
bool on_file(png_structp png, const F& f) noexcept {
  try {
    f(*static_cast<File*>(png_get_io_ptr(png)));
    return true;
  } catch (...) {
    static_cast<Trouble*>(png_get_error_ptr(png))->thrown = std::current_exception();
    return false;
  }
}
void write_bytes(png_structp png, png_bytep from, std::size_t bytes) {
  const auto write = [&](FileWriter& file) { file.write(from, bytes); };
  if (!on_file<FileWriter>(png, write)) png_error(png, "cannot be written");
}
void flush(png_structp) {}

// --- reading -------------------------------------------------------------------------------------

/// A file being read, and its decoding progress.
struct Source {
  explicit Source(const std::string& path) : file(path) {}

  FileReader file;
  std::uint64_t rows_left = 0;     // rows not decoded yet, over all passes
  std::size_t trailing_bytes = 0;  // image data read after the last row was decoded
};

/// Reads bytes for libpng. Limits image data beyond the pixels, which libpng would inflate to their
/// end: 1 MB may expand to 1 GB.
void read_bytes(png_structp png, png_bytep to, std::size_t bytes) {
  auto& source = *static_cast<Source*>(png_get_io_ptr(png));
  constexpr png_uint_32 idat = 0x49444154;
  const bool image_data = (png_get_io_state(png) & PNG_IO_MASK_LOC) == PNG_IO_CHUNK_DATA &&
                          png_get_io_chunk_type(png) == idat;
  if (image_data && source.rows_left == 0) {
    source.trailing_bytes += bytes;
    if (source.trailing_bytes > max_trailing_bytes) {
      png_error(png, "its image data go on behind the last pixel");
    }
  }
  const auto read = [&](Source& from) { from.file.read(to, bytes); };
  if (!on_file<Source>(png, read)) png_error(png, "cannot be read");
}

/// Counts a decoded row; libpng calls it before it looks for the end of the image data.
void count_row(png_structp png, png_row_infop, png_bytep) {
  --static_cast<Source*>(png_get_io_ptr(png))->rows_left;
}

struct Reader {
  png_structp png;
  png_infop info = nullptr;

  explicit Reader(Trouble& trouble)
      : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &trouble, on_error, on_warning)) {
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) {
      png_destroy_read_struct(&png, nullptr, nullptr);
      throw Error(ErrorCode::out_of_memory, "libpng has no memory for a reader");
    }
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
};

struct Header {
  png_uint_32 width, height;
  int channels;
  int bits;                  // per channel: 8 or 16
  int passes;                // of interlacing
  std::uint64_t in_a_row;    // bytes in the file
  std::size_t out_of_a_row;  // bytes after conversion
};

/// Returns the number of rows that libpng decodes; for interlaced pictures, the sum over the
/// passes.
std::uint64_t rows_to_decode(const Header* header) {
  if (header->passes == 1) return header->height;
  std::uint64_t rows = 0;
  for (int pass = 0; pass < header->passes; ++pass) {
    if (PNG_PASS_COLS(header->width, pass) > 0) rows += PNG_PASS_ROWS(header->height, pass);
  }
  return rows;
}

/// Enables byte swapping: 16-bit channels are big-endian in the file.
void set_byte_order(png_structp png, int bits) {
  if (bits == 16 && std::endian::native == std::endian::little) png_set_swap(png);
}

/// Reads everything before the pixels, and sets up their conversion.
bool read_header(png_structp png, png_infop info, Source* source, Header* header) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_user_limits(png, max_side, max_side);
  // Skips comments, profiles and other ancillary chunks, without inflating them; PLTE and tRNS are
  // kept.
  constexpr int all_of_them = -1;
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, all_of_them);
  png_set_read_fn(png, source, read_bytes);
  source->rows_left = 1;  // nonzero: nothing is decoded yet
  png_read_info(png, info);
  header->width = png_get_image_width(png, info);
  header->height = png_get_image_height(png, info);
  header->in_a_row = png_get_rowbytes(png, info);
  png_set_expand(png);  // palettes, less than 8 bits, transparent colors
  set_byte_order(png, png_get_bit_depth(png, info));
  header->passes = png_set_interlace_handling(png);
  source->rows_left = rows_to_decode(header);
  png_set_read_user_transform_fn(png, count_row);
  png_read_update_info(png, info);
  header->channels = png_get_channels(png, info);
  header->bits = png_get_bit_depth(png, info);
  header->out_of_a_row = png_get_rowbytes(png, info);
  return true;
}

/// Reads row by row, which needs no table of row pointers.
bool read_pixels(png_structp png, const Header* header, png_bytep pixels) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  for (int pass = 0; pass < header->passes; ++pass) {
    for (png_uint_32 row = 0; row < header->height; ++row) {
      png_read_row(png, pixels + row * header->out_of_a_row, nullptr);
    }
  }
  png_read_end(png, nullptr);
  return true;
}

/// Throws before any allocation if the header claims more data than the file's size or the
/// machine's memory can hold.
void expect_plausible(const std::string& path, const Header& header, std::size_t file_bytes) {
  const auto claim = [&] {
    return path + ": " + std::to_string(header.width) + " x " + std::to_string(header.height) +
           " pixels";
  };
  if (header.in_a_row * header.height > max_inflation * file_bytes) {
    throw Error(ErrorCode::io, claim() + " are announced, which no file of " +
                                   std::to_string(file_bytes) + " bytes can hold");
  }
  const std::uint64_t bytes = std::uint64_t{header.out_of_a_row} * header.height;
  constexpr std::uint64_t always_there = std::uint64_t{64} << 20;  // no query of available memory
  if (bytes > always_there && bytes > static_cast<std::uint64_t>(detail::available_memory())) {
    throw Error(ErrorCode::out_of_memory, claim() + " need " + std::to_string(bytes >> 20) +
                                              " MiB of memory, more than is available");
  }
}

// --- writing -------------------------------------------------------------------------------------

struct Writer {
  png_structp png;
  png_infop info = nullptr;

  explicit Writer(Trouble& trouble)
      : png(png_create_write_struct(PNG_LIBPNG_VER_STRING, &trouble, on_error, on_warning)) {
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) {
      png_destroy_write_struct(&png, nullptr);
      throw Error(ErrorCode::out_of_memory, "libpng has no memory for a writer");
    }
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { png_destroy_write_struct(&png, &info); }
};

struct Picture {
  const png_byte* pixels;
  png_uint_32 width, height;
  int channels;
  int bits;
};

bool write_picture(png_structp png, png_infop info, FileWriter* file, const Picture* picture) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  static constexpr int color_types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                        PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_write_fn(png, file, write_bytes, flush);
  png_set_IHDR(png, info, picture->width, picture->height, picture->bits,
               color_types[picture->channels - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  set_byte_order(png, picture->bits);
  const std::size_t row_bytes = static_cast<std::size_t>(picture->width) *
                                static_cast<std::size_t>(picture->channels) *
                                static_cast<std::size_t>(picture->bits / 8);
  for (png_uint_32 row = 0; row < picture->height; ++row) {
    png_write_row(png, picture->pixels + row * row_bytes);
  }
  png_write_end(png, info);
  return true;
}

void expect_picture(const std::string& path, const ConstTensorRef& tensor) {
  const Extents& shape = tensor.shape;
  const bool has_channels = shape.rank == 3 && shape[2] >= 1 && shape[2] <= 4;
  const auto fits = [](std::int64_t side) {
    return side >= 1 && side <= static_cast<std::int64_t>(max_side);
  };
  const bool has_type = tensor.dtype == DType::u8 || tensor.dtype == DType::u16;
  const bool is_picture =
      has_type && (shape.rank == 2 || has_channels) && fits(shape[0]) && fits(shape[1]);
  if (is_picture) return;
  throw Error(
      ErrorCode::unsupported,
      path + ": a tensor of " + std::string(to_string(tensor.dtype)) + " " + to_string(shape) +
          " is no picture; accepted for PNG: u8 or u16 of H x W, or H x W x C with C 1 to 4, and H "
          "and W 1 to " +
          std::to_string(max_side) + ". A .npy file takes any");
}

}  // namespace

Tensor read_png(const std::string& path) {
  Source source(path);
  const std::size_t file_bytes = source.file.size();
  Trouble trouble;
  const Reader reader(trouble);
  Header header{};
  if (!read_header(reader.png, reader.info, &source, &header)) trouble.raise(path);
  expect_plausible(path, header, file_bytes);
  Tensor tensor(header.bits == 16 ? DType::u16 : DType::u8,
                {header.height, header.width, header.channels});
  if (!read_pixels(reader.png, &header, tensor.data<png_byte>())) trouble.raise(path);
  return tensor;
}

void write_png(const std::string& path, const ConstTensorRef& tensor) {
  require_tensor(path, tensor, "tensor");
  expect_picture(path, tensor);
  Tensor gathered;
  const void* pixels = tensor.data;
  if (!in_host_memory(tensor.device.backend) ||
      !(tensor.strides == tensor.shape.contiguous_strides())) {
    gathered = Tensor(tensor.dtype, tensor.shape);
    copy(tensor, gathered);
    pixels = gathered.data<void>();
  }
  FileWriter file(path);
  Trouble trouble;
  const Writer writer(trouble);
  const Picture picture{.pixels = static_cast<const png_byte*>(pixels),
                        .width = static_cast<png_uint_32>(tensor.shape[1]),
                        .height = static_cast<png_uint_32>(tensor.shape[0]),
                        .channels = tensor.rank() == 2 ? 1 : static_cast<int>(tensor.shape[2]),
                        .bits = tensor.dtype == DType::u16 ? 16 : 8};
  if (!write_picture(writer.png, writer.info, &file, &picture)) trouble.raise(path);
  file.commit();
}

}  // namespace rung::workbench
