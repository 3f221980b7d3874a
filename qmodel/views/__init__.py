"""What turns a `qmodel.result.Report` into text: each view knows results alone."""
