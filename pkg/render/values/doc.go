// Package values has what templates compute with: JSON values, their texts, and the Budget that limits both.
//
// Three caps hold for everything that one upstream makes a template do: bytes of text and values, steps, and time. What
// makes text or values takes from the caps as it goes, and each look at the clock comes after so many steps. A function
// of which a single call can make much of little says before how much that will be.
package values
