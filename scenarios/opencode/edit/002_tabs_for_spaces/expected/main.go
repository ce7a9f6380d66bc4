package main

func main() {
	if ready {
		run()
	}
}
