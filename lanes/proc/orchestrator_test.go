package proc_test

func orchestrate(string) int { return 0 }

const envOrchestrator = "PROC_TEST_ORCHESTRATOR"
