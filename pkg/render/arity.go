package render

import (
	"fmt"
	"math"
	"reflect"
	"text/template/parse"
)

// builtinArity is the least and the most arguments of text/template's own functions.
var builtinArity = map[string][2]int{
	"and": {1, math.MaxInt}, "or": {1, math.MaxInt}, "index": {1, math.MaxInt}, "printf": {1, math.MaxInt},
	"not": {1, 1}, "len": {1, 1}, "lt": {2, 2}, "le": {2, 2}, "gt": {2, 2}, "ge": {2, 2},
}

// arity returns the least and the most arguments of a function.
func arity(name string) (least, most int) {
	if name == "default" {
		return 2, math.MaxInt // with only a default it would do nothing
	}
	if name == "eq" {
		return 2, math.MaxInt
	}
	f := bound(&run{}, name)
	if f == nil {
		if n, known := builtinArity[name]; known {
			return n[0], n[1]
		}
		return 0, math.MaxInt
	}
	t := reflect.TypeOf(f)
	if t.IsVariadic() {
		return t.NumIn() - 1, math.MaxInt
	}
	return t.NumIn(), t.NumIn()
}

// arguments checks the number of arguments of a call: text/template checks it only when it executes the call.
func (c *compiler) arguments(pos parse.Pos, name string, given int) {
	least, most := arity(name)
	switch {
	case given < least && name == "default":
		c.errorf(pos, "write `.spec.field | default VALUE`", "default has no value to fall back to")
	case given < least:
		c.errorf(pos, "the value before | is the last of them", "%s takes %s and is given %d", name, counted(least, most), given)
	case given > most:
		c.errorf(pos, "put a call that is an argument in parentheses", "%s takes %s and is given %d", name, counted(least, most), given)
	}
}

// counted returns "2 arguments" or "at least 1 argument".
func counted(least, most int) string {
	text := fmt.Sprintf("%d arguments", least)
	if least == 1 {
		text = "1 argument"
	}
	if most != least {
		return "at least " + text
	}
	return text
}
