" SPDX-License-Identifier: Apache-2.0
" Vim syntax of tkc's language. Made by scripts/gen-vim; do not edit.
if exists("b:current_syntax")
  finish
endif

syn match   tkNumber "\<\d[0-9_]*\(\.\d[0-9_]*\)\=\([eE][-+]\=\d\+\)\=\>"
syn match   tkNumber "\<0[xX][0-9a-fA-F_]\+\>"
syn match   tkNumber "\<0[bB][01_]\+\>"
syn region  tkString start=+"+ skip=+\\.+ end=+"+ oneline
syn region  tkComment start="//" end="$" contains=tkTodo
syn region  tkComment start="/\*" end="\*/" contains=tkTodo
syn keyword tkTodo TODO FIXME XXX contained
syn match   tkOperator "+:\|\.\.\|->"
syn match   tkAttributeUnknown "@\h\w*"
syn match   tkAttribute "@warps\>"
syn match   tkAttribute "@stages\>"
syn match   tkAttribute "@cluster\>"
syn match   tkAttribute "@persistent\>"
syn match   tkAttribute "@specialize\>"
syn match   tkAttribute "@fastmath\>"
syn match   tkAttribute "@tune\>"
syn match   tkAttribute "@require\>"
syn keyword tkItem kernel fn const let var
syn keyword tkConditional if else
syn keyword tkLoop for while in
syn keyword tkImport import
syn keyword tkConstant true false inf nan newaxis
syn keyword tkStatement break continue return
syn keyword tkType type int float bool i8 i16 i32 i64 u8 u16 u32 u64 f8e4m3 f8e5m2 f16 bf16 f32 f64
syn keyword tkAccess out inout
syn keyword tkBuiltin zeros full iota reshape permute transpose broadcast concat split interleave
syn keyword tkBuiltin deinterleave flip slice gather where min max fmin fmax clamp bitcast sum prod
syn keyword tkBuiltin any all xor argmax argmin reduce cumsum cumprod cummax cummin scan sort topk
syn keyword tkBuiltin histogram dot dot_scaled atomic_add atomic_max atomic_min atomic_and
syn keyword tkBuiltin atomic_or atomic_xor atomic_xchg atomic_cas philox rand randn program_id
syn keyword tkBuiltin num_programs bitwidth dot_type given assert static_assert assume print abs
syn keyword tkBuiltin exp exp2 expm1 log log2 log1p sqrt rsqrt sin cos tan asin acos atan atan2
syn keyword tkBuiltin sinh cosh tanh erf pow floor ceil round trunc fma sigmoid rcp isnan isinf
syn keyword tkBuiltin cdiv next_pow2 popcount clz mulhi
syn keyword tkWord step

hi def link tkNumber Number
hi def link tkString String
hi def link tkComment Comment
hi def link tkTodo Todo
hi def link tkOperator Operator
hi def link tkAttribute PreProc
hi def link tkAttributeUnknown Error
hi def link tkItem Statement
hi def link tkStatement Statement
hi def link tkConditional Conditional
hi def link tkLoop Repeat
hi def link tkImport Include
hi def link tkConstant Constant
hi def link tkType Type
hi def link tkAccess StorageClass
hi def link tkBuiltin Function
hi def link tkWord Keyword

let b:current_syntax = "tk"
