def plan_baselines(*a): raise NotImplementedError
def hybrid_baselines(*a): raise NotImplementedError
