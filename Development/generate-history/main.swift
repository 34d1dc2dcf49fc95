print("generate-history")
