"""The figures and tables of the papers, run again on data that can be had."""
