# SPDX-License-Identifier: Apache-2.0
# A ctypes binding of the library to NumPy, for the tests that compare with NumPy.
#
#     softmax = Kernel("std/softmax.tk", "softmax", {"BN": 64})
#     softmax(x=array(values, "bf16"), y=out)
#
# An argument is a NumPy array (views with any strides too), an Array where NumPy has no such type (bf16, f8), a number, or
# None for an optional parameter that is not given. Launches run in check mode. Failures raise TkcError with the report's text.
#
# TKC_TEST_DEVICE=cuda runs kernels on a GPU: whole buffers are copied there and back, check mode is off, and what the GPU back
# end cannot compile is noted in `refusals` and runs on the CPU. TKC_TEST_WARPS=n compiles each kernel for n warps. TKC_TEST_CACHE=folder keeps what is compiled for a GPU. TKC_TEST_EXACT=1 gives each buffer an allocation of its own size, for
# compute-sanitizer. TKC_TEST_DRY=1 compiles for "cuda" and launches there, on a driver that runs nothing, but takes results from the CPU.
# TKC_TEST_DEVICE=sim runs them on the simulator, on the arrays themselves; TKC_TEST_SEED=n chooses its schedule.
import atexit
import collections
import ctypes
import os
import pathlib
import re
import time

import numpy as np

NAMES = ["bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64",
         "f8e4m3", "f8e5m2", "f16", "bf16", "f32", "f64"]
# How elements of each type lie in NumPy.
STORAGE = {"bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
           "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
           "f8e4m3": np.uint8, "f8e5m2": np.uint8, "f16": np.float16, "bf16": np.uint16,
           "f32": np.float32, "f64": np.float64}
NUMPY_NAME = {np.dtype(t): name for name, t in STORAGE.items() if name not in ("f8e4m3", "f8e5m2", "bf16")}
FLOATS = ("f8e4m3", "f8e5m2", "f16", "bf16", "f32", "f64")
MAX_RANK = 8

(ARG_NONE, ARG_TENSOR, ARG_INT, ARG_FLOAT) = range(4)
STATUS_DEVICE = 7


class Tensor_(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_uint32),
                ("dim", ctypes.c_int64 * MAX_RANK), ("stride", ctypes.c_int64 * MAX_RANK)]


class Arg_(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("tensor", Tensor_), ("i", ctypes.c_int64), ("f", ctypes.c_double)]


class Define_(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class ParamInfo_(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("is_tensor", ctypes.c_bool), ("optional", ctypes.c_bool),
                ("access", ctypes.c_int), ("dtype", ctypes.c_char_p), ("rank", ctypes.c_uint32),
                ("dim", ctypes.POINTER(ctypes.c_char_p))]


class LaunchOptions_(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("check", ctypes.c_bool), ("stop", ctypes.c_void_p),
                ("stream", ctypes.c_void_p), ("seed", ctypes.c_uint64)]


class MatmulOptions_(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("bias", ctypes.POINTER(Tensor_)), ("activation", ctypes.c_int), ("tf32", ctypes.c_bool),
                ("scale_a", ctypes.c_void_p), ("scale_b", ctypes.c_void_p), ("scale_d", ctypes.c_void_p), ("stream", ctypes.c_void_p)]


class Text_(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class Build_(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("llvm", ctypes.c_char_p), ("assembler", ctypes.c_char * 512), ("driver", ctypes.c_uint32),
                ("why", ctypes.c_char * 256), ("gpus", ctypes.c_uint32)]


class TkcError(Exception):
    """A call that failed: status is the phrase of its code, the text that of the report."""

    def __init__(self, status, text):
        super().__init__(f"{status}\n{text}" if text else status)
        self.status = status
        self.text = text


class Refused(TkcError):
    """The GPU back end names what it cannot compile yet."""


class DeviceError(TkcError):
    """The GPU failed; nothing more can be done with it in this process."""


DEVICE = os.environ.get("TKC_TEST_DEVICE", "cpu")
WARPS = os.environ.get("TKC_TEST_WARPS")  # may be set anew: counts for kernels made after
CACHE = os.environ.get("TKC_TEST_CACHE")
SEED = int(os.environ.get("TKC_TEST_SEED", "0"))  # of the simulator's schedule
EXACT = os.environ.get("TKC_TEST_EXACT") == "1"
DRY = os.environ.get("TKC_TEST_DRY") == "1"
REFUSALS = ("cannot be compiled for", "cuBLASLt has no algorithm")  # in the texts of refusals
(TO_DEVICE, FROM_DEVICE) = range(2)
MOST_BYTES = 256 << 20 if EXACT else 6 << 30  # of the buffers of one launch on a GPU
POOLED = 32 << 20  # up to so many bytes go through one block that is kept
MOST_CACHED = 1 << 34
refusals = []  # texts, of launches that ran on the CPU instead
launches = [0]  # how many ran where they were to run
spent = collections.Counter()  # seconds of launches (with compiling) and copies on a GPU, and of launches on the CPU


def library_path():
    if "LIBTKC" in os.environ:
        return os.environ["LIBTKC"]
    if "TKC" not in os.environ:
        raise SystemExit("tkclib: set TKC to the tool that was built, or LIBTKC to the library")
    return str(pathlib.Path(os.environ["TKC"]).resolve().parent / "libtkc.so")


class Library:
    """The shared library with one context and one device."""

    def __init__(self):
        self.c = c = ctypes.CDLL(library_path())
        for name, result in (("tkc_status_text", ctypes.c_char_p), ("tkc_report_text", ctypes.c_char_p),
                             ("tkc_kernel_name", ctypes.c_char_p), ("tkc_kernel_param_count", ctypes.c_size_t),
                             ("tkc_kernel_param", ctypes.POINTER(ParamInfo_)),
                             ("tkc_kernel_variant_count", ctypes.c_size_t)):
            getattr(c, name).restype = result
        for name in ("tkc_context_destroy", "tkc_device_close", "tkc_kernel_destroy", "tkc_program_destroy",
                     "tkc_report_destroy", "tkc_text_free"):
            getattr(c, name).restype = None
        c.tkc_device_free.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self.context = ctypes.c_void_p()
        c.tkc_config_create.restype = ctypes.c_void_p
        c.tkc_config_destroy.restype = None
        config = ctypes.c_void_p(c.tkc_config_create())
        if CACHE:
            self.call("tkc_config_cache", config, CACHE.encode(), ctypes.c_uint64(MOST_CACHED), report=False)
        self.call("tkc_context_create", config, ctypes.byref(self.context), report=False)
        c.tkc_config_destroy(config)
        self.devices = {}
        self.block, self.block_size, self.block_device = None, 0, None

    def device(self, name=DEVICE):
        if name not in self.devices:
            found = ctypes.c_void_p()
            self.call("tkc_device_open", self.context, name.encode(), ctypes.byref(found))
            self.devices[name] = found
        return self.devices[name]

    def assembler(self):
        """What machine code is made with; empty: nothing is there."""
        build = Build_(size=ctypes.sizeof(Build_))
        self.call("tkc_build_info", self.context, ctypes.byref(build), report=False)
        return build.assembler.decode()

    def pool(self, device, size):
        """Address of a block of a device's memory, the same for each call as long as it is large enough."""
        if self.block_size < size or self.block_device is not device:
            self.drop_pool()
            block = ctypes.c_void_p()
            size = max(1 << 20, 1 << (size - 1).bit_length())
            self.call("tkc_device_alloc", device, ctypes.c_size_t(size), ctypes.byref(block))
            self.block, self.block_size, self.block_device = block, size, device
        return self.block.value

    def drop_pool(self):
        if self.block_size:
            self.c.tkc_device_free(self.block_device, self.block)
        self.block_size = 0

    def call(self, name, *args, report=True):
        found = ctypes.c_void_p()
        status = getattr(self.c, name)(*args, *([ctypes.byref(found)] if report else []))
        text = ""
        if found:
            text = self.c.tkc_report_text(found, ctypes.c_bool(False)).decode()
            self.c.tkc_report_destroy(found)
        if status != 0:
            kind = DeviceError if status == STATUS_DEVICE else TkcError
            kind = Refused if any(words in text for words in REFUSALS) else kind
            raise kind(self.c.tkc_status_text(status).decode(), text)

    def close(self):
        self.drop_pool()
        for device in self.devices.values():
            self.c.tkc_device_close(device)
        self.c.tkc_context_destroy(self.context)


_library = None


def library():
    global _library
    if _library is None:
        _library = Library()
    return _library


class Array:
    """Elements of a named type, as bits in a NumPy array where NumPy does not know the type."""

    def __init__(self, bits, dtype):
        assert bits.dtype == STORAGE[dtype], (bits.dtype, dtype)
        self.bits = bits
        self.dtype = dtype

    shape = property(lambda self: self.bits.shape)
    T = property(lambda self: Array(self.bits.T, self.dtype))

    def __getitem__(self, index):
        return Array(self.bits[index], self.dtype)

    def transpose(self, *axes):
        return Array(self.bits.transpose(*axes), self.dtype)

    def copy(self):
        return Array(self.bits.copy(), self.dtype)

    def f64(self):
        """The values, in a new array of float64."""
        return convert(self, "f64").bits


def convert(x, dtype):
    """x as another type, by the language's casts."""
    source = np.ascontiguousarray(x.bits)
    result = np.empty(source.shape, STORAGE[dtype])
    library().call("tkc_convert", NAMES.index(dtype), ctypes.c_void_p(result.ctypes.data), NAMES.index(x.dtype),
                   ctypes.c_void_p(source.ctypes.data), ctypes.c_size_t(source.size), report=False)
    return Array(result, dtype)


def wrap(x):
    """An Array of x as it is."""
    return x if isinstance(x, Array) else Array(x, NUMPY_NAME[x.dtype])


def array(values, dtype):
    """An Array of `values` (anything that NumPy takes), each converted once."""
    values = np.asarray(values)
    if dtype in FLOATS:
        return convert(Array(values.astype(np.float64), "f64"), dtype)
    return Array(values.astype(STORAGE[dtype]), dtype)


def _tensor_arg(x):
    x = wrap(x)
    arg = Arg_(kind=ARG_TENSOR)
    t = arg.tensor
    t.data = x.bits.ctypes.data if x.bits.size else None
    t.dtype = NAMES.index(x.dtype)
    t.rank = x.bits.ndim
    for i in range(x.bits.ndim):
        stride, rest = divmod(x.bits.strides[i], x.bits.itemsize)
        assert rest == 0
        t.dim[i] = x.bits.shape[i]
        t.stride[i] = stride
    return arg


def _arg(x):
    if x is None:
        return Arg_(kind=ARG_NONE)
    if isinstance(x, (np.ndarray, Array)):
        return _tensor_arg(x)
    if isinstance(x, (bool, int, np.integer)):
        return Arg_(kind=ARG_INT, i=int(x))
    return Arg_(kind=ARG_FLOAT, f=float(x))


# ---- Memory of a GPU ----------------------------------------------------------------------------

def _bounds(a):
    """Addresses of the first byte of a NumPy array and past its last, whatever its strides."""
    low = high = a.ctypes.data
    for n, stride in zip(a.shape, a.strides):
        low += min(0, (n - 1) * stride)
        high += max(0, (n - 1) * stride)
    return low, high + a.itemsize


def _buffer(a):
    """Those of the whole buffer that it is part of: what stands around it is copied too, and so found unharmed or not."""
    low, high = _bounds(a)
    owner = a
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    first, last = _bounds(owner) if owner.size else (low, high)
    return (first, last) if first <= low and high <= last else (low, high)


class Mirror:
    """Copies on a GPU of the buffers that tensors are in, at addresses that are aligned alike: in one block that is kept between
    launches and filled by one copy, or, large or for a checker of accesses, in blocks of exactly their sizes."""

    def __init__(self, device, tensors):
        self.device = device
        self.regions = []
        for low, high in sorted(_buffer(wrap(t).bits) for t in tensors if wrap(t).bits.size):
            if self.regions and low < self.regions[-1][1]:
                self.regions[-1][1] = max(self.regions[-1][1], high)
            else:
                self.regions.append([low, high])
        self.begin = []  # of each region on the device
        self.blocks = []  # to be freed
        self.staged = None  # the pooled block's contents

    def __enter__(self):
        size = sum(high - low for low, high in self.regions)
        if size > MOST_BYTES:
            raise Refused("too large", "the test's tensors cannot be copied")
        start = time.perf_counter()
        try:
            if EXACT or size > POOLED:
                self.allocate()
            elif self.regions:
                self.stage()
        except BaseException:
            self.__exit__()
            raise
        spent["copy"] += time.perf_counter() - start
        return self

    def allocate(self):
        for low, high in self.regions:
            block = ctypes.c_void_p()
            library().call("tkc_device_alloc", self.device, ctypes.c_size_t(low % 256 + high - low), ctypes.byref(block))
            self.blocks.append(block)
            self.begin.append(block.value + low % 256)
            self.copy(self.begin[-1], low, high - low, TO_DEVICE)

    def stage(self):
        offsets, end = [], 0
        for low, high in self.regions:
            offsets.append(-(-end // 256) * 256 + low % 256)
            end = offsets[-1] + high - low
        self.block = library().pool(self.device, end)
        self.begin = [self.block + at for at in offsets]
        self.staged = np.zeros(end, np.uint8)
        for (low, high), at in zip(self.regions, offsets):
            self.staged[at:at + high - low] = _bytes_at(low, high)
        self.copy(self.block, self.staged.ctypes.data, end, TO_DEVICE)

    def __exit__(self, *_):
        for block in self.blocks:
            library().c.tkc_device_free(self.device, block)
        self.blocks = []

    def copy(self, to, source, size, direction):
        library().call("tkc_device_copy", self.device, ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(size),
                       ctypes.c_int(direction))

    def address(self, at):
        for (low, high), begin in zip(self.regions, self.begin):
            if low <= at < high:
                return begin + at - low
        raise KeyError(at)

    def back(self):
        """Everything to where it came from, after what was launched; what has not changed is not written: it may be read-only."""
        start = time.perf_counter()
        if self.staged is not None:
            self.copy(self.staged.ctypes.data, self.block, self.staged.size, FROM_DEVICE)
        elif not self.regions:
            library().call("tkc_device_synchronize", self.device)
        for (low, high), begin in zip(self.regions, self.begin):
            if self.staged is not None:
                new = self.staged[begin - self.block:begin - self.block + high - low]
            else:
                new = np.empty(high - low, np.uint8)
                self.copy(new.ctypes.data, begin, high - low, FROM_DEVICE)
            old = _bytes_at(low, high)
            if not np.array_equal(old, new):
                old[...] = new
        spent["copy"] += time.perf_counter() - start


def _bytes_at(low, high):
    return np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low))


KERNEL = re.compile(r"^(?P<attributes>(?:@\w+(?:\([^)]*\))?\s*)*)kernel (?=\s*\w+\s*[<(])", re.M)


def with_warps(text, warps):
    """The text with @warps(n) before each kernel, in place of what stands there."""
    def attributes(m):
        return f"@warps({warps}) " + re.sub(r"@warps\([^)]*\)\s*", "", m["attributes"]) + "kernel "
    return KERNEL.sub(attributes, text)


class Kernel:
    """A kernel of a file ("std/NAME.tk", "path.tk") or of a source text."""

    def __init__(self, source, name=None, defines=None, check=True):
        lib = library()
        self.check = check
        self.program = ctypes.c_void_p()
        self.handle = ctypes.c_void_p()
        if source.endswith(".tk"):
            lib.call("tkc_program_from_file", lib.context, source.encode(), ctypes.byref(self.program))
        else:
            text = source.encode()
            lib.call("tkc_program_from_string", lib.context, b"test.tk", text, ctypes.c_size_t(len(text)), ctypes.byref(self.program))
        defines = defines or {}
        list_ = (Define_ * max(len(defines), 1))()
        for i, (key, value) in enumerate(defines.items()):
            value = str(value).lower() if isinstance(value, bool) else str(value)
            list_[i] = Define_(key.encode(), value.encode())
        lib.call("tkc_kernel_create", self.program, name.encode() if name else None, list_,
                 ctypes.c_size_t(len(defines)), ctypes.byref(self.handle))
        if WARPS:
            lib.call("tkc_kernel_set_warps", self.handle, ctypes.c_uint(int(WARPS)), report=False)
        n = lib.c.tkc_kernel_param_count(self.handle)
        info = [lib.c.tkc_kernel_param(self.handle, ctypes.c_size_t(i)).contents for i in range(n)]
        self.params = [p.name.decode() for p in info]
        self._outputs = [p.name.decode() for p in info if p.is_tensor and p.access != 1]
        _open.add(self)

    def __call__(self, **given):
        try:
            self.on(DEVICE, **given)
            launches[0] += 1
        except Refused as e:
            if DEVICE == "cpu":
                raise
            refusals.append(e.text)
            self.on("cpu", **given)

    def on(self, device, **given):
        """Launches on a device by name."""
        unknown = set(given) - set(self.params)
        if unknown:
            raise TypeError(f"no parameters {sorted(unknown)}; there are {self.params}")
        args = (Arg_ * max(len(self.params), 1))(*[_arg(given.get(name)) for name in self.params])
        if device.startswith(("cpu", "sim")):  # their memory is the host's
            start = time.perf_counter()
            self.launch(device, args, self.check and device == "cpu")
            spent["cpu"] += time.perf_counter() - start
            return
        tensors = [x for x in given.values() if isinstance(x, (np.ndarray, Array))]
        with Mirror(library().device(device), tensors) as mirror:
            for arg in args:
                if arg.kind == ARG_TENSOR and arg.tensor.data:
                    arg.tensor.data = mirror.address(arg.tensor.data)
            start = time.perf_counter()
            self.launch(device, args, False)
            spent["launch"] += time.perf_counter() - start
            if not DRY:
                mirror.back()
        if DRY:
            self.on("cpu", **given)

    def launch(self, device, args, check):
        options = LaunchOptions_(size=ctypes.sizeof(LaunchOptions_), check=check, stop=None, stream=None, seed=SEED)
        library().call("tkc_launch", self.handle, library().device(device), args, ctypes.c_size_t(len(self.params)),
                       ctypes.byref(options))

    def outputs(self):
        """Names of the tensors that are written."""
        return self._outputs

    def variants(self):
        """How many times the kernel was compiled."""
        return library().c.tkc_kernel_variant_count(self.handle)

    def notes(self, i=0):
        """What the compiler decided for a variant; 0: the last of the device that was used first."""
        text = Text_()
        library().call("tkc_kernel_variant_notes", self.handle, ctypes.c_size_t(i), ctypes.byref(text), report=False)
        notes = ctypes.string_at(text.at, text.size).decode()
        library().c.tkc_text_free(ctypes.byref(text))
        return notes

    def close(self):
        if self.handle:
            library().c.tkc_kernel_destroy(self.handle)
            library().c.tkc_program_destroy(self.program)
            self.handle = self.program = ctypes.c_void_p()
            _open.discard(self)


_open = set()  # kernels

# ---- Matrix products ----------------------------------------------------------------------------

ACTIVATIONS = (None, "relu", "gelu")


def matmul(a, b, d, alpha=1.0, beta=0.0, c=None, bias=None, activation=None, tf32=False, **scales):
    """tkc_matmul on DEVICE. `scales`: scale_a, scale_b, scale_d, arrays of one f32."""
    if DEVICE.startswith(("cpu", "sim")):
        _matmul(lambda at: at, a, b, d, alpha, beta, c, bias, activation, tf32, scales)
    else:
        given = [x for x in (a, b, c, d, bias, *scales.values()) if x is not None]
        with Mirror(library().device(), given) as mirror:
            _matmul(mirror.address, a, b, d, alpha, beta, c, bias, activation, tf32, scales)
            mirror.back()
    launches[0] += 1


def _matmul(address, a, b, d, alpha, beta, c, bias, activation, tf32, scales):
    def tensor(x):
        t = None if x is None else _tensor_arg(x).tensor
        if t is not None and t.data:
            t.data = address(t.data)
        return t

    def pointer(t):
        return None if t is None else ctypes.byref(t)
    options = MatmulOptions_(size=ctypes.sizeof(MatmulOptions_), activation=ACTIVATIONS.index(activation), tf32=tf32)
    for name, value in scales.items():
        setattr(options, name, address(value.ctypes.data))
    bias = tensor(bias)
    if bias is not None:
        options.bias = ctypes.pointer(bias)
    a, b, c, d = (tensor(x) for x in (a, b, c, d))
    library().call("tkc_matmul", library().device(), ctypes.c_double(alpha), pointer(a), pointer(b), ctypes.c_double(beta), pointer(c),
                   pointer(d), ctypes.byref(options))


def close_kernels():
    for k in list(_open):
        k.close()


@atexit.register
def _close():
    close_kernels()
    if _library is not None:
        _library.close()
