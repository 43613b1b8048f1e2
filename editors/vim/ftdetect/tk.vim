" SPDX-License-Identifier: Apache-2.0
" Vim itself takes *.tk for Tcl.
au BufRead,BufNewFile *.tk set filetype=tk
