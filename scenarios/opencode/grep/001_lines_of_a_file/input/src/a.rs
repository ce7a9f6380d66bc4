fn one() {}

struct S;
	fn two(x: u8) {}
