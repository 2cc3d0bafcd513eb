// Package functions has the functions that templates can call: some of text/template and sprig, and our own. It is a
// list: what is not on it does not exist. None of them reads anything but its arguments, or changes them, and each
// gives the same result each time.
//
// What a function reads and makes counts against the three caps of values.Budget. Few functions can make much of
// little; these look at their arguments first.
package functions
