def plan_lower_bound(*a): raise NotImplementedError
