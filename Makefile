# libsparse and its tools. `make help` lists the targets; everything made goes under build/.
#
#   CUDA=auto|0|1     build the CUDA back end: if nvcc and a GPU are there (default), never, or stop without nvcc;
#                     make install takes what was built
#   CUDA_HOME=DIR     where CUDA is; otherwise /usr/local/cuda, then nvcc on the PATH
#   CUDA_ARCHS="90"   compute capabilities to make machine code for; by default those of the GPUs that are here;
#                     without one, or as CUDA_ARCHS=all, what nvcc offers of ALL_ARCHS: five times the work;
#                     make install takes those of the build
#   ABLATION=1        SPARSE_WITHOUT=name,name leaves special paths out, for bench/ablation.sh; with a BUILD of its own
#   ISAL=0            decompress gzip files by zlib, although ISA-L is there, which is more than twice as fast
#   BLAS_LIBS=-lblas  what gnn links for CBLAS (Debian: whatever libblas.so is set to, OpenBLAS once it is installed)
#   PETSC=NAME        what pkg-config calls PETSc, for make mpi (PETSc; PETSc64: with 64-bit numbers)
#   SYSTEM=Darwin     build for macOS, when uname does not say so
#   BUILD=DIR         where everything made goes
#   PREFIX, BINDIR, LIBDIR, INCLUDEDIR, MANDIR, DESTDIR=DIR  where make install puts things
#   V=1               show whole command lines
#   CC, CPPFLAGS, CFLAGS, LDFLAGS are respected; the flags come after the project's own.

MAKEFLAGS += --no-builtin-rules
ifeq ($(MAKELEVEL)$(word 2,$(MAKECMDGOALS)),0) # one goal: on all processors, unless the command line says -jN
MAKEFLAGS += -j$(shell nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 1)
endif
.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

BUILD  ?= build
PREFIX ?= /usr/local
BINDIR     ?= $(PREFIX)/bin
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR     ?= $(PREFIX)/share/man
CUDA   ?= auto
SYSTEM ?= $(shell uname -s)
AR     ?= ar
ALL_ARCHS := 70 75 80 86 89 90

VERSION := $(subst $() ,.,$(shell sed -n 's/^\#define SP_VERSION_[A-Z]* \([0-9]*\)$$/\1/p' libsparse/sparse.h))
MAJOR   := $(firstword $(subst ., ,$(VERSION)))

# ---- CUDA ----------------------------------------------------------------------------------------------------

GPUS := $(if $(filter auto,$(CUDA)),$(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null) \
          $(wildcard /dev/nvidia[0-9]*) $(and $(filter install,$(MAKECMDGOALS)),$(wildcard $(BUILD)/obj/cuda)))
ifneq ($(CUDA),0)
NVCC := $(firstword $(if $(CUDA_HOME),$(wildcard $(CUDA_HOME)/bin/nvcc)) $(wildcard /usr/local/cuda/bin/nvcc) \
          $(shell command -v nvcc 2>/dev/null))
endif
ifeq ($(NVCC),)
ifeq ($(CUDA),1)
$(error CUDA=1 needs nvcc, which is neither in CUDA_HOME/bin, /usr/local/cuda/bin nor on the PATH: install the CUDA \
        toolkit, or name its folder with CUDA_HOME=DIR, or build for the CPU with CUDA=0)
endif
ifneq ($(and $(filter install,$(MAKECMDGOALS)),$(filter auto,$(CUDA)),$(wildcard $(BUILD)/obj/cuda)),)
$(error $(BUILD) was made with nvcc, which is not found now; sudo forgets the PATH: add CUDA_HOME=DIR, or CUDA=0 to \
        install a build without CUDA)
endif
CONFIG := cpu
NO_CUDA := no nvcc was found (CUDA_HOME=DIR names the CUDA toolkit)
else ifeq ($(CUDA)$(strip $(GPUS)),auto)
NVCC :=
CONFIG := cpu
NO_CUDA := this machine has nvcc but no GPU (CUDA=1 builds for both)
else
CONFIG := cuda
CUDA_ROOT := $(patsubst %/bin/nvcc,%,$(realpath $(NVCC)))
OFFERED   := $(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch 2>/dev/null))
DROPPED   := $(filter-out $(OFFERED),$(ALL_ARCHS))
ifndef CUDA_ARCHS
CUDA_ARCHS := $(if $(filter install,$(MAKECMDGOALS)),$(subst code=sm_,,$(shell grep -o 'code=sm_[0-9]*' \
                $(BUILD)/obj/cuda/flags 2>/dev/null)))
CUDA_ARCHS := $(or $(CUDA_ARCHS),$(filter $(OFFERED),$(subst .,,$(sort $(shell nvidia-smi \
                --query-gpu=compute_cap --format=csv,noheader 2>/dev/null)))))
endif
ARCHS     := $(or $(filter-out all,$(CUDA_ARCHS)),$(filter-out $(if $(DROPPED),,75),$(filter \
               $(OFFERED),$(ALL_ARCHS)))) # sm_70 code runs on 75 too
GENCODE   := $(foreach a,$(ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
             -gencode arch=compute_$(lastword $(ARCHS)),code=compute_$(lastword $(ARCHS))
CUDA_LIBS := -Wl,--as-needed $(addprefix -L,$(wildcard $(CUDA_ROOT)/lib64 $(CUDA_ROOT)/targets/*/lib)) \
             -lcudart_static -Wl,-Bstatic -lstdc++ -Wl,-Bdynamic -ldl -lrt -lpthread
endif

comma := ,

# ---- flags ---------------------------------------------------------------------------------------------------

# macOS: Apple's clang does not know -fopenmp, and Homebrew keeps libraries in folders of their own.
OPENMP      := -fopenmp
ONLY_OURS   := -Wl,--exclude-libs,ALL
# Each library names all that it calls, as macOS demands; sanitizers have their functions in the program alone.
shared       = -shared -Wl,-soname,$(1).$(MAJOR) $(if $(findstring -fsanitize,$(CFLAGS)),,-Wl$(comma)-z$(comma)defs)
ifeq ($(SYSTEM),Darwin)
BREW     := $(shell brew --prefix 2>/dev/null)
KEGS     := $(wildcard $(addprefix $(BREW)/opt/,libomp zstd isa-l openblas check))
CPPFLAGS += $(KEGS:%=-I%/include)
LDFLAGS  += $(KEGS:%=-L%/lib)
OPENMP   := -Xpreprocessor -fopenmp
OPENMP_LIBS := -lomp
BLAS_LIBS ?= -lopenblas
ONLY_OURS   :=
shared       = -dynamiclib -install_name $(LIBDIR)/$(1).$(MAJOR)
endif

# Contraction is off on both sides: a fused multiply-add would round differently on the CPU and on the GPU.
HARDENING := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong
WARNINGS  := -Wall -Wextra -Wshadow -Wconversion
ABLATED   := $(if $(filter 1,$(ABLATION)), -DSPARSE_ABLATION)
C_FLAGS   := -std=c11 -D_GNU_SOURCE -O3 -g $(OPENMP) -fvisibility=hidden -fPIC -ffp-contract=off \
             $(HARDENING) $(WARNINGS)$(ABLATED)
CU_FLAGS  := -std=c++17 -O3 -lineinfo -fmad=false -Xfatbin=-compress-all \
             -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra$(ABLATED)
INCLUDES  := -Ilibsparse -Iio -Imcl -Icontraction -Ignn -Ibench/generate $(if $(NVCC),-DGNN_CUDA)
COMPILE_C  = $(CC) $(CPPFLAGS) $(INCLUDES) $(C_FLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
LINK       = $(CC) $(C_FLAGS) $(CFLAGS) $(LDFLAGS) -o $@
LIBS       = $(ARC4RANDOM) $(CUDA_LIBS) $(OPENMP_LIBS) -lm
ISAL      ?= $(shell printf '\043include <isa-l/igzip_lib.h>' | $(CC) $(CPPFLAGS) $(CFLAGS) -E -x c - >/dev/null 2>&1 && echo 1)
ISAL_FLAG := $(if $(filter 1,$(ISAL)),-DIO_ISAL)
IO_LIBS   := $(if $(ISAL_FLAG),-lisal) -lzstd -lz -lpthread
BLAS_LIBS ?= -lblas
CHECK_LIBS = $(or $(shell pkg-config --libs check 2>/dev/null),-lcheck -lsubunit -lrt -lpthread) -lm

# ---- what there is -------------------------------------------------------------------------------------------

OBJ := $(BUILD)/obj/$(CONFIG)
BIN := $(BUILD)/bin
LIB := $(BUILD)/lib

# The largest files take longest and begin first.
CUDA_SOURCES := $(if $(NVCC),$(shell ls -S libsparse/device/*.cu libsparse/*/cuda/*.cu libsparse/*/cuda/*/*.cu contraction/cuda/*.cu \
                  gnn/cuda/sample*.cu))
SAMPLERS     := $(wildcard gnn/sample*.c gnn/cpu/sample.c gnn/cuda/sample*.cu) # of gnn, without BLAS
LIB_SOURCES  := $(wildcard libsparse/*/*.c libsparse/*/cpu/*.c mcl/*.c contraction/*.c) $(filter %.c,$(SAMPLERS))
HEADERS      := libsparse/sparse.h libsparse/sp_ranks.h libsparse/sparse.hpp mcl/mcl.h contraction/contraction.h \
                gnn/gnn.h
LIB_SOURCES  := $(filter-out libsparse/device/arc4random.c $(if $(NVCC),libsparse/core/no_cuda.c),$(LIB_SOURCES))
# What static libstdc++ asks of glibc 2.36; the file says why. In no archive, because users of these link as they like.
ARC4RANDOM   := $(if $(NVCC),$(OBJ)/libsparse/device/arc4random.c.o)
TOOLS        := $(patsubst apps/%/main.c,%,$(wildcard apps/*/main.c))
APP_SOURCES  := $(filter-out %/main.c,$(wildcard apps/*/*.c apps/*/*/*.c)) $(if $(NVCC),$(wildcard apps/*/*/*.cu))
TEST_SOURCES := $(filter-out tests/fuzz/% tests/gen/% tests/mpi/% tests/preload/%,$(wildcard tests/*/*.c tests/*/*/*.c))
SUITE_MAINS  := $(foreach source,$(TEST_SOURCES),$(if $(filter test_%,$(notdir $(source))),$(source)))
SUITES       := $(basename $(notdir $(SUITE_MAINS)))
FUZZERS      := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
GENERATORS   := $(patsubst tests/gen/%.c,%,$(wildcard tests/gen/*.c))

objects      = $(patsubst %,$(OBJ)/%.o,$(1))
LIB_OBJECTS := $(call objects,$(CUDA_SOURCES) $(LIB_SOURCES))
IO_OBJECTS  := $(call objects,$(wildcard io/*/*.c))
GNN_OBJECTS := $(call objects,$(filter-out $(SAMPLERS),$(wildcard gnn/*.c gnn/cpu/*.c) $(if $(NVCC),$(wildcard \
                 gnn/cuda/*.cu))))
GENERATE_OBJECTS := $(call objects,$(wildcard bench/generate/*.c))
APP_OBJECTS := $(call objects,$(APP_SOURCES))
TEST_OBJECTS := $(call objects,$(filter tests/support/%,$(TEST_SOURCES)))
parts_of     = $(wildcard $(patsubst test_%,$(dir $(1))%_*.c,$(basename $(notdir $(1)))))

# What the tools and the tests link; users first. Members that nobody calls stay out.
MODULES := $(if $(GNN_OBJECTS),$(LIB)/libsparse-gnn.a) $(if $(IO_OBJECTS),$(LIB)/libsparse-io.a) $(OBJ)/libgenerate.a \
           $(LIB)/libsparse.a
PARTS   := $(if $(APP_OBJECTS),$(OBJ)/libapps.a) $(MODULES)
SHARED_LIBS := $(foreach name,sparse sparse-io sparse-gnn,$(LIB)/lib$(name).so)

.PHONY: all lib tools suites generators fuzzers test demo bench install uninstall setup help clean
.PHONY: mpi test-mpi wheel test-python docs-python check-layers sweep fuzz sanitize valgrind races coverage dist release notice FORCE

all: notice lib tools
lib: $(SHARED_LIBS) $(SHARED_LIBS:.so=.a)
tools: $(TOOLS:%=$(BIN)/%)
suites: $(SUITES:%=$(BUILD)/tests/%) $(BUILD)/python/libspgraph.so $(WHEEL_TOOLS)
generators: $(GENERATORS:%=$(BUILD)/tests/gen/%)

notice:
ifeq ($(NVCC),)
	@echo "CPU-only build$(if $(filter auto,$(CUDA)),: $(NO_CUDA))"
else
	@echo "CPU and CUDA build: sm_$(subst $() ,$() sm_,$(strip $(ARCHS))) and PTX$(if $(filter-out \
	  all,$(CUDA_ARCHS)),, (CUDA_ARCHS=90 takes a fifth of the time))"
endif

# ---- rules ---------------------------------------------------------------------------------------------------

# Stops with the remedy where the compiler does not find one of the headers.
needs = for header in $(1); do echo "\#include <$$header>" | $(CC) $(CPPFLAGS) $(CFLAGS) -E -x c - >/dev/null 2>&1 || { \
  echo "make: the compiler does not find $$header: run scripts/setup, which installs what is missing" >&2; exit 1; }; done

# Rewritten only when the configuration or a flag changes, so that what depends on it is made again just then.
FLAGS_NOW = $(CC) $(CPPFLAGS) $(C_FLAGS) $(CFLAGS) $(ISAL_FLAG) $(NVCC) $(CU_FLAGS) $(GENCODE)
LINK_NOW  = $(LIB_OBJECTS) $(IO_OBJECTS) $(PYTHON_OBJECTS) $(GNN_OBJECTS) $(GENERATE_OBJECTS) $(APP_OBJECTS) \
            $(call objects,$(TEST_SOURCES)) $(LIBS) $(LDFLAGS) $(FLAGS_NOW)
$(OBJ)/flags: FORCE
	@mkdir -p $(@D); printf '%s\n' '$(FLAGS_NOW)' | cmp -s - $@ || { $(call needs,zlib.h zstd.h cblas.h) && \
	  printf '%s\n' '$(FLAGS_NOW)' > $@; }
$(BUILD)/obj/linked: FORCE $(ARC4RANDOM)
	@mkdir -p $(@D); printf '%s\n' '$(LINK_NOW)' | cmp -s - $@ || printf '%s\n' '$(LINK_NOW)' > $@

Q   := $(if $(filter 1,$(V)),,@)
say  = @mkdir -p $(@D)$(if $(Q),; printf '  %-5s %s\n' '$(1)' '$(2)')

$(OBJ)/%.c.o: %.c $(OBJ)/flags
	$(call say,CC,$<)
	$(Q)$(COMPILE_C)

$(OBJ)/%.cu.o: %.cu $(OBJ)/flags
	$(call say,NVCC,$<)
	$(Q)$(NVCC) $(CPPFLAGS) $(INCLUDES) $(CU_FLAGS) $(GENCODE) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

$(OBJ)/libsparse/%.o: private INCLUDES := -Ilibsparse
$(OBJ)/contraction/%.o: private INCLUDES := -Ilibsparse -Icontraction $(if $(NVCC),-DCONTRACTION_CUDA)
$(OBJ)/bench/%.o: private INCLUDES := -Ilibsparse -Ibench/generate
$(OBJ)/gnn/%.o: private INCLUDES := -Ilibsparse -Ignn $(if $(NVCC),-DGNN_CUDA)
# Hopper's matrix instructions are only in the code for that device alone.
$(OBJ)/gnn/cuda/multiply_split.cu.o: \
  private GENCODE := $(subst 90$(comma)code=sm_90,90a$(comma)code=sm_90a,$(GENCODE))
# Its host code copies with all threads.
$(OBJ)/libsparse/spmm/cuda/stream_copy.cu.o: private CU_FLAGS += -Xcompiler -fopenmp
# Optimised, its loops with sanitizers in them take a compiler longer than all other files together.
$(OBJ)/libsparse/spmm/cpu/tile.c.o: private COMPILE_C += $(if $(findstring -fsanitize,$(CFLAGS)),-O0)
# Nor do the fuzz targets call any product: with sanitizers these files would take most of the time to build them.
$(foreach room,$(wildcard libsparse/*/cpu),$(OBJ)/$(room)/%.o): private COMPILE_C += $(if $(findstring -fsanitize=fuzzer,$(CFLAGS)),-fno-sanitize=all)
$(OBJ)/io/%.o: private C_FLAGS += -Wsign-conversion $(ISAL_FLAG)
$(OBJ)/apps/%.o: private INCLUDES += -Iapps -Impi -I$(OBJ)/apps $(if $(NVCC),-DSPARSE_CUDA -isystem $(CUDA_ROOT)/include)
# The page of a report and its scripts, as the numbers of a C array.
$(OBJ)/apps/%.html.h: apps/%.html
	@mkdir -p $(@D); od -An -v -tx1 $< | sed 's/ \(..\)/0x\1,/g' > $@
$(OBJ)/apps/%.js.h: apps/%.js
	@mkdir -p $(@D); od -An -v -tx1 $< | sed 's/ \(..\)/0x\1,/g' > $@
$(OBJ)/apps/common/page.c.o: $(OBJ)/apps/common/page.html.h
$(OBJ)/apps/mcl-gpu/report.c.o: $(OBJ)/apps/mcl-gpu/page.js.h
$(OBJ)/apps/gnn/report.c.o: $(OBJ)/apps/gnn/page.js.h
$(OBJ)/tests/fuzz/%.o $(OBJ)/tests/apps/%.o: private INCLUDES += -Iapps -Impi
$(OBJ)/tests/%.o: private INCLUDES += -Itests/support $(if $(NVCC),-DSPARSE_CUDA -isystem $(CUDA_ROOT)/include)

$(LIB)/libsparse.a: $(LIB_OBJECTS)
$(LIB)/libsparse-io.a: $(IO_OBJECTS)
$(LIB)/libsparse-gnn.a: $(GNN_OBJECTS)
$(OBJ)/libgenerate.a: $(GENERATE_OBJECTS)
$(OBJ)/libapps.a: $(APP_OBJECTS)
$(OBJ)/libtests.a: $(TEST_OBJECTS)
$(addprefix $(LIB)/,libsparse.a libsparse-io.a libsparse-gnn.a) $(patsubst %,$(OBJ)/lib%.a,generate apps tests): \
  $(BUILD)/obj/linked
	@mkdir -p $(@D); rm -f $@; $(AR) rcs $@ $(filter %.o,$^)

$(LIB)/libsparse.so: $(LIB_OBJECTS) $(BUILD)/obj/linked
	$(call say,LINK,$@)
	$(Q)$(LINK).$(VERSION) $(call shared,libsparse.so) $(ONLY_OURS) $(filter %.o,$^) $(LIBS)
	@ln -sf libsparse.so.$(VERSION) $@.$(MAJOR) && ln -sf libsparse.so.$(MAJOR) $@

# The readers and writers, apart because they need more libraries.
$(LIB)/libsparse-io.so: $(IO_OBJECTS) $(LIB)/libsparse.so
	$(call say,LINK,$@)
	$(Q)$(LINK).$(VERSION) $(call shared,libsparse-io.so) $(filter %.o,$^) -L$(LIB) -lsparse $(IO_LIBS) $(OPENMP_LIBS) -lm
	@ln -sf libsparse-io.so.$(VERSION) $@.$(MAJOR) && ln -sf libsparse-io.so.$(MAJOR) $@

# Graph neural networks, apart because they need BLAS; all but their samplers, which are in libsparse.
$(LIB)/libsparse-gnn.so: $(GNN_OBJECTS) $(LIB)/libsparse.so
	$(call say,LINK,$@)
	$(Q)$(LINK).$(VERSION) $(call shared,libsparse-gnn.so) $(ONLY_OURS) $(filter %.o,$^) -L$(LIB) -lsparse $(BLAS_LIBS) $(LIBS)
	@ln -sf libsparse-gnn.so.$(VERSION) $@.$(MAJOR) && ln -sf libsparse-gnn.so.$(MAJOR) $@

# The library of the Python package: also reads graphs, and minds Ctrl-C.
PYTHON_OBJECTS := $(call objects,$(wildcard python/native/*.c)) $(IO_OBJECTS) $(LIB_OBJECTS)
$(BUILD)/python/libspgraph.so: $(PYTHON_OBJECTS) $(BUILD)/obj/linked
	$(call say,LINK,$@)
	$(Q)$(LINK) -shared -Wl,-soname,libspgraph.so -Wl,--exclude-libs,ALL $(filter %.o,$^) $(IO_LIBS) $(LIBS)

# The tools of the Python wheel share the libraries: machine code for GPUs lies in the wheel once, not in each tool.
WHEEL_TOOLS := $(TOOLS:%=$(BUILD)/python/bin/%)
$(BUILD)/python/bin/%: $(OBJ)/apps/%/main.c.o $(OBJ)/libapps.a $(OBJ)/libgenerate.a $(SHARED_LIBS) $(BUILD)/obj/linked
	$(call say,LINK,$@)
	$(Q)$(LINK) -Wl,--as-needed $(filter %.o %.a,$^) -L$(LIB) -lsparse-gnn -lsparse-io -lsparse $(IO_LIBS) $(LIBS) -ldl

# Of the tools, suites and fuzz targets only those that use gnn need BLAS; samplers do not.
$(BIN)/gnn $(BIN)/fuzz_weights $(BIN)/fuzz_saved $(BIN)/sparse-bench $(BUILD)/tests/test_alloc $(BUILD)/tests/test_arguments \
$(filter-out %_sampler,$(filter $(BUILD)/tests/test_gnn_%,$(SUITES:%=$(BUILD)/tests/%))): private LIBS += $(BLAS_LIBS)

# The calls of the runtime that test_alloc makes fail.
WRAPPED := __cudaLaunchKernel cudaLaunchKernel cudaLaunchKernelExC cudaMemcpyAsync cudaMemsetAsync \
           cudaStreamSynchronize cudaStreamWaitEvent cudaEventRecord cudaFuncGetAttributes cudaMallocFromPoolAsync \
           cudaFreeAsync cudaGetLastError cudaPeekAtLastError
$(BUILD)/tests/test_alloc: private LDFLAGS += $(if $(NVCC),$(WRAPPED:%=-Wl$(comma)--wrap=%))

$(BIN)/%: $(OBJ)/apps/%/main.c.o $(PARTS) $(BUILD)/obj/linked
	$(call say,LINK,$@)
	$(Q)$(LINK) $< $(PARTS) $(IO_LIBS) $(LIBS) -ldl

# A suite is build/tests/test_NAME wherever its test_NAME.c lies, with its parts NAME_*.c beside that.
$(foreach main,$(SUITE_MAINS),$(eval \
  $(BUILD)/tests/$(basename $(notdir $(main))): $(call objects,$(main) $(call parts_of,$(main)))))
$(SUITES:%=$(BUILD)/tests/%): $(OBJ)/libtests.a $(PARTS) $(BUILD)/obj/linked
	$(call say,LINK,$@)
	$(Q)$(LINK) $(filter %.c.o,$^) $(OBJ)/libtests.a $(PARTS) $(CHECK_LIBS) $(IO_LIBS) $(LIBS) -ldl

$(BUILD)/tests/gen/%: $(OBJ)/tests/gen/%.c.o $(BUILD)/obj/linked
	$(call say,LINK,$@)
	$(Q)$(LINK) $< -lm

# What bench/ranks/volume.py reckons with; it uses a private header of mcl.
$(OBJ)/bench/ranks/%.o: private INCLUDES := -Ilibsparse -Iio -Imcl
$(BUILD)/bench/volume: $(OBJ)/bench/ranks/volume.c.o $(LIB)/libsparse-io.a $(LIB)/libsparse.a $(BUILD)/obj/linked
	$(call say,LINK,$@)
	$(Q)$(LINK) $< $(LIB)/libsparse-io.a $(LIB)/libsparse.a $(IO_LIBS) $(LIBS)

# What mcl-gpu and contract open when mpirun has started them; no other part knows MPI or PETSc.
PETSC ?= PETSc
MPI_FLAGS = $(patsubst -I%,-isystem %,$(shell pkg-config --cflags $(PETSC) mpi-c)) -Ilibsparse -Imcl -Impi
MPI_LIBS  = $(shell pkg-config --libs $(PETSC) mpi-c)
$(BUILD)/obj/petsc: FORCE
	@mkdir -p $(@D); printf '%s\n' '$(PETSC)' | cmp -s - $@ || printf '%s\n' '$(PETSC)' > $@
$(LIB)/libsparse-mpi.so: mpi/mpi_ranks.c mpi/mpi_ranks.h libsparse/sp_ranks.h libsparse/sparse.h $(OBJ)/flags $(BUILD)/obj/petsc
	@pkg-config --exists $(PETSC) mpi-c || { \
	  echo "make: pkg-config does not find $(PETSC) and mpi-c: run scripts/setup mpi, which installs them" >&2; exit 1; }
	$(call say,LINK,$@)
	$(Q)$(LINK) $(CPPFLAGS) $(MPI_FLAGS) -shared -Wl,-soname,libsparse-mpi.so $< $(MPI_LIBS)

$(BUILD)/tests/mpi/%: tests/mpi/%.c $(LIB)/libsparse-mpi.so $(LIB)/libsparse-io.a $(LIB)/libsparse.a $(BUILD)/obj/linked
	$(call say,LINK,$@)
	$(Q)$(LINK) $(CPPFLAGS) -Iio $(MPI_FLAGS) $< -Wl,-rpath,'$$ORIGIN/../../lib' $(LIB)/libsparse-mpi.so \
	  $(LIB)/libsparse-io.a $(LIB)/libsparse.a $(MPI_LIBS) $(IO_LIBS) $(LIBS)

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)
.SECONDARY:

# ---- what people type ----------------------------------------------------------------------------------------

setup:
	@scripts/setup build

demo:
	@+BUILD=$(BUILD) scripts/demo

test: ; @scripts/setup test
	@+$(MAKE) --no-print-directory all suites generators
	@BUILD=$(BUILD) tests/run.sh

mpi: notice $(LIB)/libsparse-mpi.so $(BIN)/mcl-gpu $(BIN)/contract

test-mpi: ; @scripts/setup mpi
	@+$(MAKE) --no-print-directory mpi generators $(BUILD)/bench/volume \
	  $(patsubst %.c,$(BUILD)/%,$(wildcard tests/mpi/*.c))
	@BUILD=$(BUILD) bash tests/mpi/test_mpi.sh
	@BUILD=$(BUILD) bash tests/mpi/test_contract_mpi.sh

# $(BUILD)/dist/{spgraph,mcl_gpu}-VERSION-py3-none-PLATFORM.whl, and their tests in a new virtual environment.
wheel: $(BUILD)/python/libspgraph.so $(WHEEL_TOOLS)
	@BUILD=$(BUILD) scripts/wheel

test-python: $(BUILD)/python/libspgraph.so $(WHEEL_TOOLS) tools
	@BUILD=$(BUILD) FRESH=1 bash tests/python/test_python.sh
	@BUILD=$(BUILD) bash tests/python/test_interpreters.sh

# $(BUILD)/python/site, from the docstrings and docs/python.md.
docs-python:
	@BUILD=$(BUILD) scripts/docs-python

# Random cases of each tool and of the library against mcl, scipy and numpy.
SWEEP_CASES ?= 2000
sweep: all
	@BUILD=$(BUILD) SWEEP_CASES=$(SWEEP_CASES) tests/sweep.sh

check-layers:
	@tests/repository/check_layers.sh

bench: all generators
	@BUILD=$(BUILD) bench/bench_mcl.sh --small

# Address and undefined-behaviour sanitizers, in their own folder. OpenMP's own threads never end, hence no leak
# check of what they hold.
sanitize:
	@+$(MAKE) --no-print-directory BUILD=$(BUILD)/sanitize CUDA=0 HARDENING= \
	  CFLAGS='-O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined $(CFLAGS)' \
	  all suites generators
	@BUILD=$(BUILD)/sanitize ASAN_OPTIONS=allocator_may_return_null=1 tests/run.sh --suites

# Suites of readers, plans of input and figures under valgrind, on one thread: other suites take it hours. It has no
# AVX-512, so the code for AVX2 runs.
VALGRIND_SUITES := transform npy notes quality
valgrind:
	@command -v valgrind >/dev/null || { echo "make valgrind needs valgrind: scripts/setup valgrind" >&2; exit 1; }
	@+$(MAKE) --no-print-directory BUILD=$(BUILD)/valgrind CUDA=0 $(VALGRIND_SUITES:%=$(BUILD)/valgrind/tests/test_%)
	@for suite in $(VALGRIND_SUITES); do CK_FORK=no OMP_NUM_THREADS=1 valgrind -q --leak-check=full \
	  --show-leak-kinds=definite --errors-for-leak-kinds=definite --error-exitcode=9 $(BUILD)/valgrind/tests/test_$$suite || exit 1; done

# The suites and mcl-gpu under ThreadSanitizer, which knows clang's OpenMP, not gcc's.
races:
	@command -v $(FUZZ_CC) >/dev/null || { echo "make races needs clang: scripts/setup fuzz" >&2; exit 1; }
	@+$(MAKE) --no-print-directory BUILD=$(BUILD)/races CC=$(FUZZ_CC) CUDA=0 HARDENING= \
	  CFLAGS='-O1 -g -fsanitize=thread -Wno-sign-conversion' $(BUILD)/races/bin/mcl-gpu suites generators
	@BUILD=$(BUILD)/races CC=$(FUZZ_CC) tests/races.sh

# Lines that the suites, and the scripts about mcl-gpu and about tables and formats of the other tools, run.
COVERAGE_SCRIPTS := mcl/golden mcl/live_mcl $(addprefix apps/test_,cli mcl_runs report gnn gnn_tables gnn_data \
                    contract contract_formats contract_attributes)
coverage:
	@+$(MAKE) --no-print-directory BUILD=$(BUILD)/coverage CUDA=0 HARDENING= \
	  CFLAGS='-O1 -fno-inline --coverage -fprofile-update=atomic $(CFLAGS)' all suites generators
	@find $(BUILD)/coverage -name '*.gcda' -delete
	@BUILD=$(BUILD)/coverage tests/run.sh --suites
	@for script in $(COVERAGE_SCRIPTS); do BUILD=$(BUILD)/coverage bash tests/$$script.sh || exit 1; done
	@BUILD=$(BUILD)/coverage tests/coverage.sh

# libFuzzer targets, FUZZ_SECONDS each; what they find stays in build/fuzz/NAME.found.
FUZZ_SECONDS ?= 60
FUZZ_CC      ?= clang
FUZZ_ENGINE  ?= -fsanitize=fuzzer
fuzz:
	@command -v $(FUZZ_CC) >/dev/null || { echo "make fuzz needs clang: scripts/setup fuzz" >&2; exit 1; }
	@+$(MAKE) --no-print-directory BUILD=$(BUILD)/fuzz CC=$(FUZZ_CC) CUDA=0 HARDENING= \
	  CFLAGS='-O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -Wno-sign-conversion' \
	  fuzzers
	@BUILD=$(BUILD)/fuzz FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run_fuzz.sh

fuzzers: $(FUZZERS:%=$(BUILD)/bin/%)
$(FUZZERS:%=$(BUILD)/bin/%): $(BUILD)/bin/%: $(OBJ)/tests/fuzz/%.c.o $(PARTS)
	$(call say,LINK,$@)
	$(Q)$(LINK) $^ $(FUZZ_ENGINE) $(IO_LIBS) $(LIBS) -ldl

# Below PREFIX the pkg-config file names folders by it, so that pkg-config can move them.
from_prefix = $(patsubst $(PREFIX)/%,$${prefix}/%,$(1))
SHARED := $(foreach name,sparse sparse-io sparse-gnn,$(foreach end,so so.$(MAJOR) so.$(VERSION),lib$(name).$(end)))
# filled in: FILE.in as it is installed.
filled_in = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(call from_prefix,$(LIBDIR))|' \
  -e 's|@INCLUDEDIR@|$(call from_prefix,$(INCLUDEDIR))|' -e 's|@VERSION@|$(VERSION)|' \
  -e 's|@PRIVATE@|-fopenmp $(filter-out -Wl$(comma)-B%,$(CUDA_LIBS)) -lm|' -e 's|@IO_PRIVATE@|$(IO_LIBS)|' \
  -e 's|@GNN_PRIVATE@|$(BLAS_LIBS)|'
FILLED_IN := libsparse/libsparse.pc io/libsparse-io.pc libsparse/libsparse-gnn.pc $(addprefix libsparse/libsparse-config,.cmake -version.cmake)
filled_folder = $(LIBDIR)/$(if $(filter %.pc,$(1)),pkgconfig,cmake/libsparse)
install: all
	install -d $(addprefix $(DESTDIR),$(BINDIR) $(INCLUDEDIR) $(LIBDIR)/pkgconfig $(LIBDIR)/cmake/libsparse $(MANDIR)/man1 \
	  $(MANDIR)/man3)
	install -m 644 $(HEADERS) $(DESTDIR)$(INCLUDEDIR)/
	install -m 644 io/io.h $(DESTDIR)$(INCLUDEDIR)/sparse_io.h
	install -m 644 $(LIB)/libsparse.a $(LIB)/libsparse-io.a $(LIB)/libsparse-gnn.a $(DESTDIR)$(LIBDIR)/
	install -m 755 $(addprefix $(LIB)/,$(filter %.$(VERSION),$(SHARED))) $(DESTDIR)$(LIBDIR)/
	$(if $(wildcard $(LIB)/libsparse-mpi.so),install -m 755 $(LIB)/libsparse-mpi.so $(DESTDIR)$(LIBDIR)/)
	for name in libsparse.so libsparse-io.so libsparse-gnn.so; do ln -sf $$name.$(VERSION) $(DESTDIR)$(LIBDIR)/$$name.$(MAJOR) && \
	  ln -sf $$name.$(MAJOR) $(DESTDIR)$(LIBDIR)/$$name; done
	$(foreach file,$(FILLED_IN),$(filled_in) $(file).in > $(DESTDIR)$(call filled_folder,$(file))/$(notdir $(file)) &&) true
	install -m 755 $(TOOLS:%=$(BIN)/%) $(DESTDIR)$(BINDIR)/
	install -m 644 $(wildcard docs/man/*.1) $(DESTDIR)$(MANDIR)/man1/
	scripts/man3 $(BUILD)/man3 && install -m 644 $(BUILD)/man3/*.3 $(DESTDIR)$(MANDIR)/man3/
	@[ -n "$(DESTDIR)" ] || ldconfig 2>/dev/null || true # so that programs find the library in /usr/local/lib

uninstall:
	rm -f $(addprefix $(DESTDIR),$(addprefix $(INCLUDEDIR)/,$(notdir $(HEADERS)) sparse_io.h) \
	  $(addprefix $(LIBDIR)/,libsparse.a libsparse-io.a libsparse-gnn.a libsparse-mpi.so $(SHARED)) $(TOOLS:%=$(BINDIR)/%) \
	  $(foreach file,$(FILLED_IN),$(call filled_folder,$(file))/$(notdir $(file))) \
	  $(patsubst docs/man/%,$(MANDIR)/man1/%,$(wildcard docs/man/*.1)))
	scripts/man3 $(BUILD)/man3 && cd $(BUILD)/man3 && for page in *.3; do rm -f "$(DESTDIR)$(MANDIR)/man3/$$page"; done

# The source of the last commit; the same commit gives the same bytes.
DIST := mcl-gpu-$(VERSION)
dist:
	@mkdir -p $(BUILD)/dist
	git archive --format=tar --prefix=$(DIST)/ HEAD | gzip -9n > $(BUILD)/dist/$(DIST).tar.gz

# Static binaries for Linux; another machine's need its cross compiler and qemu.
MACHINES ?= x86_64 aarch64
release:
	@BUILD=$(BUILD) packaging/release.sh $(MACHINES)

clean:
	rm -rf $(BUILD)

help:
	@echo 'make                 library and tools, under build/ (CPU-only without nvcc)'
	@echo 'make demo            as scripts/demo: installs what is missing, builds, clusters two yeast networks'
	@echo 'make test            as scripts/test: installs what is missing, builds, runs every test that it can'
	@echo 'make sweep           random cases against mcl, scipy and numpy, SWEEP_CASES=2000 of each tool'
	@echo 'make mpi             libsparse-mpi.so, with which mpirun starts mcl-gpu and contract on many hosts; make test-mpi tests it'
	@echo 'make bench           small benchmarks beside mcl; bench/bench_mcl.sh --help for the large ones'
	@echo 'make install         library, header, pkg-config file, tools, man pages; PREFIX=/usr/local DESTDIR='
	@echo 'make uninstall       takes them away again; called as make install was'
	@echo 'make dist            the source of the last commit, under build/dist/; packaging/deb.sh makes Debian packages'
	@echo 'make release         static binaries of the tools, MACHINES="x86_64 aarch64"'
	@echo 'make setup           only installs what is missing (apt-get)'
	@echo 'make wheel           the Python package and the tools, build/dist/*.whl'
	@echo 'make test-python     the tests of the wheel in a new virtual environment, and in every Python that is here'
	@echo 'make docs-python     the site of the Python package, build/python/site/ (Sphinx from PyPI)'
	@echo 'make check-layers    includes between modules point one way'
	@echo 'make sanitize        the tests under the address and undefined-behaviour sanitizers'
	@echo 'make valgrind        four suites under valgrind, on one thread'
	@echo 'make races           the suites and mcl-gpu under the thread sanitizer (clang)'
	@echo 'make coverage        which lines of libsparse, io, mcl, mcl-gpu the tests run; at least 95 percent of each (gcov)'
	@echo 'make fuzz            every reader under libFuzzer, FUZZ_SECONDS=60 each (clang)'
	@echo 'make clean           removes build/'
	@echo 'CUDA=auto|0|1  CUDA_HOME=DIR  CUDA_ARCHS="80 90"  V=1  CC  CPPFLAGS  CFLAGS  LDFLAGS'
