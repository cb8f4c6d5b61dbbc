#include "support/zip.h"

#if PRUNER_ZIP
#include <zip.h>
#endif

#include <filesystem>

#include "support/file.h"
#include "support/memory.h"
#include "support/output_file.h"

namespace pruner {

#if PRUNER_ZIP
namespace {

struct CloseZip {
  void operator()(zip_t* zip) const { zip_discard(zip); }
};
using Zip = std::unique_ptr<zip_t, CloseZip>;

Result<Zip> open_zip(const std::string& path, int flags) {
  int code = 0;
  if (zip_t* zip = zip_open(path.c_str(), flags, &code)) return Zip(zip);
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  return Error(path, ": cannot open as a zip archive: ", reason);
}

}  // namespace

struct ZipReader::Archive {
  Zip zip;
};

Result<ZipReader> ZipReader::open(const std::string& path) {
  TRY(check_readable(path));
  Archive archive;
  TRY_ASSIGN(archive.zip, open_zip(path, ZIP_RDONLY));
  std::error_code unknown;
  const auto file_bytes = static_cast<double>(std::filesystem::file_size(path, unknown));
  if (unknown) return Error(path, ": ", unknown.message());
  ZipReader reader;
  double unpacked_bytes = 0;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive.zip.get(), 0); ++i) {
    zip_stat_t entry;
    if (zip_stat_index(archive.zip.get(), static_cast<zip_uint64_t>(i), 0, &entry) != 0 ||
        entry.name == nullptr) {
      return Error(path, ": entry ", i, ": ", zip_strerror(archive.zip.get()));
    }
    unpacked_bytes += static_cast<double>(entry.size);
    reader.names_.emplace_back(entry.name);
  }
  if (const Result<Unit> fits = check_unpacked(file_bytes, unpacked_bytes); !fits.ok())
    return Error(path, ": ", fits.error().message());
  reader.archive_ = std::make_shared<const Archive>(std::move(archive));
  return reader;
}

Result<std::string> ZipReader::read(size_t index) const {
  zip_t* zip = archive_->zip.get();
  zip_stat_t entry;
  if (zip_stat_index(zip, index, 0, &entry) != 0) return Error(zip_strerror(zip));
  zip_file_t* file = zip_fopen_index(zip, index, 0);
  if (file == nullptr) return Error(zip_strerror(zip));
  std::string bytes(entry.size, '\0');
  size_t done = 0;
  zip_int64_t n = 1;
  while (done < bytes.size() && n > 0) {
    n = zip_fread(file, bytes.data() + done, bytes.size() - done);
    done += n > 0 ? static_cast<size_t>(n) : 0;
  }
  char rest;  // reading the end checks the sum of the whole
  if (n > 0) n = zip_fread(file, &rest, 1);
  const std::string reason = n < 0 ? zip_file_strerror(file) : "";
  zip_fclose(file);
  if (n < 0) return Error(reason);
  if (done < bytes.size()) return Error("truncated");
  return bytes;
}

Result<Unit> write_zip(const std::string& path, std::span<const ZipEntry> entries) {
  TRY_ASSIGN(const OutputFile output, OutputFile::open(path));
  TRY_ASSIGN(Zip zip, open_zip(output.path(), ZIP_CREATE | ZIP_TRUNCATE));
  for (const ZipEntry& entry : entries) {  // libzip reads their bytes when it closes
    zip_source_t* source = zip_source_buffer(zip.get(), entry.bytes.data(), entry.bytes.size(), 0);
    const zip_int64_t index = zip_file_add(zip.get(), entry.name.c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0 || zip_set_file_compression(
                         zip.get(), static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0) != 0) {
      return Error(path, ": entry \"", entry.name, "\": ", zip_strerror(zip.get()));
    }
  }
  if (zip_close(zip.get()) != 0)
    return Error(path, ": cannot be written: ", zip_strerror(zip.get()));
  zip.release();
  return output.commit();
}

#else
struct ZipReader::Archive {};

Result<ZipReader> ZipReader::open(const std::string& path) {
  return Error(path, ": this build has no libzip, and reads no zip archives");
}

Result<std::string> ZipReader::read(size_t) const { return Error("this build has no libzip"); }

Result<Unit> write_zip(const std::string& path, std::span<const ZipEntry>) {
  return Error(path, ": this build has no libzip, and writes no zip archives");
}
#endif

}  // namespace pruner
