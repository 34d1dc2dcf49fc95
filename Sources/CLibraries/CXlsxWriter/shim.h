// libxlsxwriter, which writes Excel files.
#ifndef CXLSXWRITER_SHIM_H
#define CXLSXWRITER_SHIM_H
#include <stdio.h>
#include <xlsxwriter.h>
#endif
