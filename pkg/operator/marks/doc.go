// Package marks says whose an object is: which marks an object of ours gets, what they prove about a live one, and how
// the names that a config used before are replaced.
package marks
