# Sets up cmake --install and cpack -G DEB. There are two components:
#   program   the program, its completion and manual page, and the headers and
#             find_package(pruner CONFIG) with which C and C++ programs run modules; the package is
#             pruner
#   training  the plug-in for LibTorch; the package is pruner-training
if(NOT TARGET pruner)
  return()
endif()

# The wheel (pyproject.toml) has the program and the sources of the plug-in for training, like the
# bundle of bench/gpu_bundle.sh. The plug-in is compiled on the machine that has torch.
install(TARGETS pruner RUNTIME DESTINATION bin COMPONENT wheel EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/src/model/nn/torch/plugin.cpp
              ${PROJECT_SOURCE_DIR}/src/model/nn/torch/plugin.h
        DESTINATION plugin/model/nn/torch COMPONENT plugin_source EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/src/model/nn/layer.h
        DESTINATION plugin/model/nn COMPONENT plugin_source EXCLUDE_FROM_ALL)
if(PRUNER_STATIC)
  return()
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS pruner RUNTIME COMPONENT program)
if(TARGET pruner_torch)
  # The program looks for the plug-in in lib/pruner (model/nn/torch_trainer.cpp).
  install(TARGETS pruner_torch LIBRARY DESTINATION lib/pruner COMPONENT training)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/pruner DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT program)
install(FILES ${PROJECT_SOURCE_DIR}/examples/run_module.c ${PROJECT_SOURCE_DIR}/examples/run_module.cpp
              ${PROJECT_SOURCE_DIR}/examples/run_on_gpu.c ${PROJECT_SOURCE_DIR}/examples/run_on_gpu.cpp
              ${PROJECT_SOURCE_DIR}/examples/cuda_driver.h
        DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT program)

set(config_folder lib/cmake/pruner)
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/pruner-config.cmake.in ${PROJECT_BINARY_DIR}/pruner-config.cmake
  INSTALL_DESTINATION ${config_folder} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/pruner-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/pruner-config.cmake
              ${PROJECT_BINARY_DIR}/pruner-config-version.cmake
              ${PROJECT_SOURCE_DIR}/cmake/pruner-add-module.cmake
        DESTINATION ${config_folder} COMPONENT program)

# The program prints the completion and the manual page.
foreach(printed "completion pruner.bash" "manual pruner.1")
  separate_arguments(printed)
  list(GET printed 0 command)
  list(GET printed 1 file)
  install(CODE "execute_process(COMMAND \"$<TARGET_FILE:pruner>\" ${command}
                                OUTPUT_FILE \"${PROJECT_BINARY_DIR}/${file}\" COMMAND_ERROR_IS_FATAL ANY)"
          COMPONENT program)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/pruner.bash DESTINATION share/bash-completion/completions
        RENAME pruner COMPONENT program)
install(FILES ${PROJECT_BINARY_DIR}/pruner.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
        COMPONENT program)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME pruner)
set(CPACK_PACKAGE_CONTACT "The Pruner authors <pruner@example.org>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME pruner)
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION
    "tunes and compiles neural networks for the machine they run on")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "pruner-training, libxgboost-dev")
if(TARGET pruner_torch)
  list(APPEND CPACK_COMPONENTS_ALL training)
  set(CPACK_DEBIAN_TRAINING_PACKAGE_NAME pruner-training)
  set(CPACK_DEBIAN_TRAINING_PACKAGE_DEPENDS "pruner (= ${PROJECT_VERSION}), libopenblas0-openmp")
  set(CPACK_DEBIAN_TRAINING_DESCRIPTION "trains pruner's cost models by LibTorch")
endif()
include(CPack)

add_test(NAME install
         COMMAND ${PROJECT_SOURCE_DIR}/tests/install/check.sh ${PROJECT_BINARY_DIR}
                 ${PROJECT_BINARY_DIR}/install_test)
set_tests_properties(install PROPERTIES LABELS slow TIMEOUT 600)
