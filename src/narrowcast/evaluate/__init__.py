"""What is the same for every kind of plan: verdicts, explanations, migrations, what-if. It knows no kind."""
