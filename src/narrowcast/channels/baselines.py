def plan_baselines(*a): raise NotImplementedError
