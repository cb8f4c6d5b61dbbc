// Objects -> a static library, by LLVM's objcopy and ar.
#include <llvm/ObjCopy/ConfigManager.h>
#include <llvm/ObjCopy/ObjCopy.h>
#include <llvm/Object/Archive.h>
#include <llvm/Object/ArchiveWriter.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>

#include "codegen/loader.h"

namespace pruner {

namespace {

Error to_error(llvm::Error error) { return Error("LLVM: ", llvm::toString(std::move(error))); }

llvm::StringRef text(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

using Objects = std::vector<std::unique_ptr<llvm::object::ObjectFile>>;

Result<Objects> parse(const std::vector<std::string_view>& objects) {
  Objects parsed;
  for (const std::string_view bytes : objects) {
    auto object = llvm::object::ObjectFile::createObjectFile({text(bytes), "object"});
    if (!object) return to_error(object.takeError());
    parsed.push_back(std::move(*object));
  }
  return parsed;
}

// Returns the new name of each symbol that one of `objects` defines and that others can see.
Result<llvm::StringMap<std::string>> new_names(const Objects& objects, const SymbolNaming& naming) {
  llvm::StringMap<std::string> names;
  for (const auto& object : objects) {
    for (const llvm::object::SymbolRef& symbol : object->symbols()) {
      llvm::Expected<uint32_t> flags = symbol.getFlags();
      llvm::Expected<llvm::StringRef> name = symbol.getName();
      if (!flags) return to_error(flags.takeError());
      if (!name) return to_error(name.takeError());
      const bool global = (*flags & llvm::object::SymbolRef::SF_Global) != 0;
      const bool undefined = (*flags & llvm::object::SymbolRef::SF_Undefined) != 0;
      if (global && !undefined) names[*name] = naming(std::string_view(*name));
    }
  }
  return names;
}

// Returns where a file has the bytes of a symbol that one of the file's objects defines.
Result<int64_t> place_in_archive(const std::string& path, const std::string& symbol) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file) return Error(path, ": ", file.getError().message());
  auto archive = llvm::object::Archive::create((*file)->getMemBufferRef());
  if (!archive) return to_error(archive.takeError());
  llvm::Error problem = llvm::Error::success();
  for (const llvm::object::Archive::Child& child : (*archive)->children(problem)) {
    auto bytes = child.getMemoryBufferRef();
    if (!bytes) return to_error(bytes.takeError());
    auto object = llvm::object::ObjectFile::createObjectFile(*bytes);
    if (!object) return to_error(object.takeError());
    for (const llvm::object::SymbolRef& each : (*object)->symbols()) {
      if (llvm::cantFail(each.getName()) != symbol) continue;
      const llvm::object::section_iterator section = llvm::cantFail(each.getSection());
      if (section == (*object)->section_end()) continue;
      auto contents = section->getContents();
      if (!contents) return to_error(contents.takeError());
      const auto within = static_cast<int64_t>(llvm::cantFail(each.getValue()));
      return contents->data() - (*file)->getBufferStart() + within;
    }
  }
  if (problem) return to_error(std::move(problem));
  return Error(path, ": has lost ", symbol);
}

}  // namespace

Result<int64_t> write_static_library(const std::vector<std::string_view>& objects,
                                     const std::string& path,
                                     const SymbolNaming& naming,
                                     std::string_view symbol) {
  TRY_ASSIGN(const Objects parsed, parse(objects));
  TRY_ASSIGN(const llvm::StringMap<std::string> names, new_names(parsed, naming));
  llvm::objcopy::ConfigManager config;
  for (const auto& name : names) config.Common.SymbolsToRename[name.getKey()] = name.getValue();

  std::vector<llvm::NewArchiveMember> members;
  std::vector<std::string> member_names;
  for (size_t i = 0; i < parsed.size(); ++i) member_names.push_back(std::to_string(i) + ".o");
  for (size_t i = 0; i < parsed.size(); ++i) {
    llvm::SmallVector<char, 0> bytes;
    llvm::raw_svector_ostream out(bytes);
    if (llvm::Error error = llvm::objcopy::executeObjcopyOnBinary(config, *parsed[i], out))
      return to_error(std::move(error));
    llvm::NewArchiveMember member;
    member.Buf = std::make_unique<llvm::SmallVectorMemoryBuffer>(
        std::move(bytes), member_names[i], /*RequiresNullTerminator=*/false);
    member.MemberName = member_names[i];
    members.push_back(std::move(member));
  }
  if (llvm::Error error = llvm::writeArchive(path,
                                             members,
                                             llvm::SymtabWritingMode::NormalSymtab,
                                             llvm::object::Archive::K_GNU,
                                             /*Deterministic=*/true,
                                             /*Thin=*/false)) {
    return to_error(std::move(error));
  }

  const auto renamed = names.find(text(symbol));  // local symbols keep their names
  return place_in_archive(path, renamed == names.end() ? std::string(symbol) : renamed->second);
}

}  // namespace pruner
